/** A sandbox on a platform that is as forgetful as Cloudflare's, in virtual time. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CreateInput } from "../../../src/protocol/sandbox.ts";
import { FakeBerth } from "../../fakes/berth.ts";

const minute = 60_000;
const hour = 60 * minute;

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2030, 0, 1), shouldAdvanceTime: false }));
afterEach(() => void vi.useRealTimers());

/** Lets virtual time pass until the work has ended. */
async function settle<T>(work: Promise<T>, limitMs = 10 * minute): Promise<T> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  work.then(over, over);
  for (let ms = 0; !isOver && ms < limitMs; ms += 50) await vi.advanceTimersByTimeAsync(50);
  if (!isOver) throw new Error(`nothing came within ${limitMs} ms`);
  return work;
}

async function sandboxOf(call: CreateInput = {}) {
  const berth = new FakeBerth(undefined, { platform: true });
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ start: false, ...call });
  const sandbox = local.sandbox(id);
  const machine = berth.machine(id);
  return {
    berth,
    id,
    sandbox,
    machine,
    start: () => settle(sandbox.start()),
    /** The object sleeps for this long, and its alarm rings if that is due. */
    async quiet(ms: number) {
      const end = Date.now() + ms;
      await settle(berth.evict(id));
      for (;;) {
        const dueAt = berth.alarm(id);
        if (dueAt === undefined || dueAt > end) break;
        await vi.advanceTimersByTimeAsync(Math.max(0, dueAt - Date.now()));
        await settle(berth.ringAlarm(id));
        await settle(berth.evict(id));
      }
      await vi.advanceTimersByTimeAsync(Math.max(0, end - Date.now()));
    },
  };
}

const exec = (command: string) => ({ command });

describe("a sandbox on the platform", () => {
  it("[CF1] keeps its container over quiet times between calls", async () => {
    const { sandbox, machine, start, quiet } = await sandboxOf();
    const { incarnation } = await start();
    await settle(sandbox.writeFile("a.txt", new TextEncoder().encode("one")));
    for (let n = 0; n < 4; n++) {
      await quiet(4 * minute);
      expect((await settle(sandbox.get())).incarnation).toBe(incarnation);
      await quiet(4 * minute);
      expect((await settle(sandbox.exec(exec("true")))).exitCode).toBe(0);
      expect((await settle(sandbox.stat("a.txt"))).size).toBe(3);
    }
    expect(machine.ends).toEqual([]);
    expect((await settle(sandbox.get())).incarnation).toBe(incarnation);
  });

  it("[CF2] holds a sandbox that never idles for longer than six hours", async () => {
    const { sandbox, machine, start, quiet } = await sandboxOf({ onIdle: "none" });
    const { incarnation } = await start();
    await quiet(26 * hour);
    expect(machine.ends).toEqual([]);
    expect((await settle(sandbox.get())).incarnation).toBe(incarnation);
  });

  it("[CF3] applies its list of hosts to each container of one object", async () => {
    const { sandbox, machine, start } = await sandboxOf({
      network: { internet: true, allow: ["example.com"] },
    });
    await start();
    expect([...(machine.run?.intercepts.keys() ?? [])]).toContain("*");
    await settle(sandbox.pause());
    await start();
    expect([...(machine.run?.intercepts.keys() ?? [])]).toContain("*");
  });

  it("[CF4] starts with an environment of 400 KB", async () => {
    const value = "x".repeat(60_000);
    const env = Object.fromEntries([1, 2, 3, 4, 5, 6, 7].map((n) => [`PART${n}`, value]));
    const { sandbox, start } = await sandboxOf({ env });
    expect((await start()).state).toBe("running");
    const { stdout } = await settle(sandbox.exec(exec("printenv PART7")));
    expect(stdout.trim()).toBe(value);
  });

  it("[CF7] saves files while nothing is written, and writers continue afterwards", async () => {
    const { sandbox, machine, start, berth, id } = await sandboxOf();
    await start();
    const container = berth.container(id);
    let count = 0;
    const writer = setInterval(() => {
      if (container.agent?.isFrozen !== false) return;
      count += 1;
      for (const name of ["a", "z"]) {
        container.tree.write(`/workspace/${name}`, new TextEncoder().encode(`${count}`), undefined);
      }
    }, 100);
    const textOf = async (name: string) => {
      const { body } = await settle(sandbox.readFile(name));
      return settle(new Response(body).text());
    };
    await vi.advanceTimersByTimeAsync(1_000);
    const { id: checkpoint } = await settle(sandbox.makeCheckpoint());
    const saved = count;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(count).toBeGreaterThan(saved);
    clearInterval(writer);
    await settle(sandbox.restore(checkpoint));
    expect(machine.starts).toBe(2);
    expect([await textOf("a"), await textOf("z")]).toEqual([`${saved}`, `${saved}`]);
  });

  it("[CF8] saves its files when the host is about to go, and starts with them elsewhere", async () => {
    const { sandbox, machine, start } = await sandboxOf();
    await start();
    await settle(sandbox.writeFile("a.txt", new TextEncoder().encode("one")));
    machine.retireHost();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await settle(sandbox.get())).toMatchObject({ state: "paused", reason: "host_closing" });
    expect(machine.ends).toEqual(["destroyed"]);
    expect((await start()).files).toBe("snapshot");
    expect((await settle(sandbox.stat("a.txt"))).size).toBe(3);
  });

  it("[CF8] takes the notice of nobody but its agent", async () => {
    const { sandbox, start, berth, id } = await sandboxOf();
    const { incarnation = "" } = await start();
    const secret = "x".repeat(40);
    expect(await berth.object(id).hostCloses({ incarnation, secret })).toBe(false);
    expect((await settle(sandbox.get())).state).toBe("running");
  });

  it("[CF14] says until when the platform keeps the files of a destroyed sandbox", async () => {
    const { sandbox, start } = await sandboxOf();
    await start();
    await settle(sandbox.makeCheckpoint());
    const { notes = [] } = await settle(sandbox.destroy());
    expect(notes).toHaveLength(1);
    expect(notes[0]).toContain("the platform keeps them until 2030-01-31");
  });

  it("[CF5] waits for a first start that takes a minute and a half", async () => {
    const { sandbox, machine } = await sandboxOf();
    machine.bootMs = 90_000;
    void sandbox.start().catch(() => undefined);
    await vi.advanceTimersByTimeAsync(100_000);
    expect((await settle(sandbox.get())).state).toBe("running");
    expect(machine.starts).toBe(1);
  });

  it("[CF6] tells the platform's words when there is no capacity, and starts again with a later call", async () => {
    const { sandbox, machine } = await sandboxOf();
    machine.refusal = "there is no container instance that can be provided to this durable object";
    void sandbox.start().catch(() => undefined);
    await vi.advanceTimersByTimeAsync(4 * minute);
    const failed = await settle(sandbox.get());
    expect(failed).toMatchObject({ state: "failed", restartable: true });
    expect(failed.message).toContain("no container instance");
    machine.refusal = undefined;
    expect((await settle(sandbox.exec(exec("true")))).exitCode).toBe(0);
  });

  it("[CF5] answers as soon as the agent listens, although an earlier question hangs", async () => {
    const { sandbox, machine } = await sandboxOf();
    machine.bootMs = 5_000;
    const begun = Date.now();
    await settle(sandbox.start());
    expect(Date.now() - begun).toBeLessThan(6_500);
  });
});
