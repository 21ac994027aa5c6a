import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { treeOf } from "../../bench/processes.ts";
import { until } from "../../until.ts";
import { Restarts, startFileServer } from "../file-server.ts";
import { alive } from "../processes.ts";
import type { Server } from "../server.ts";
import { Bursts, short, slow, underLease } from "./bursts.ts";

vi.setConfig({ testTimeout: 240_000 });

const wide = 16;
/** The line, and what carries answers that are long or come late, and those of the first commands. */
const fewConnections = 12;
const stoppedMs = 4_000;
/** The line stands for a second or two after the last command. */
const quietMs = 2_500;
/** No channel is opened for commands that are this far apart. */
const apartMs = 500;
/** A life that ends under a call: nobody knows what that did. */
const cutOff = ["ran", "operation_interrupted"];
const waiting = { "berth-wait-ms": "20000" };

/** What stands between two programs who write lines and JSON may be taken for theirs. */
const odd: [what: string, call: Record<string, unknown>][] = [
  ["lines first", { command: "printf '\\n\\n[\"x\",200]\\n{}'" }],
  ["no UTF-8, and NUL", { command: "printf 'a\\0\\377\\357\\273\\277b' | tee /dev/stderr" }],
  ["as base64", { command: "printf 'a\\0\\377\\n'", encoding: "base64" }],
  [
    "arguments and environment",
    { argv: ["sh", "-c", 'printf %s "$0$X"', 'a\n"\\\u2028é😀'], env: { X: "\u0001\n" } },
  ],
  ["half of a pair", { argv: ["printf", "%s", "a\udc00b"] }],
  ["an answer just within the limit", { command: "head -c 10900 /dev/zero" }],
  ["an answer beyond it", { command: "head -c 200000 /dev/zero", maxOutputBytes: 300_000 }],
  ["a call just within the limit", { command: "wc -c", stdin: "€".repeat(65_000) }],
  ["a call beyond it", { command: "wc -c", stdin: "x".repeat(2 * 1024 * 1024) }],
  ["cut output", { command: "seq 1 100000", maxOutputBytes: 10 }],
  ["a time limit", { command: "echo it; sleep 60", timeoutMs: 300 }],
  ["a signal", { command: "kill -9 $$" }],
  ["no program", { argv: ["no-such-program"] }],
  ["no folder", { command: "true", cwd: "/nowhere" }],
  ["no such field", { command: "true", other: 1 }],
];

function nothingRuns(server: Server, { id }: Bursts): Promise<void> {
  return until("nothing runs any more", () => treeOf(server.agentOf(id).pid).length === 1);
}

/** Each has ended as it may, and nothing is left. */
async function settled(server: Server, bursts: Bursts, allowed: string[]): Promise<void> {
  expectEnds(bursts, allowed);
  await bursts.check();
  await nothingRuns(server, bursts);
}

function expectEnds(bursts: Bursts, allowed: string[]): void {
  const ends = bursts.ends();
  console.log(JSON.stringify(ends));
  expect(Object.keys(ends).filter((end) => !allowed.includes(end))).toEqual([]);
}

const server = await startFileServer();

describe("commands in quick succession", () => {
  let bursts: Bursts;

  const done = async (method: string, tail: string, body?: unknown, headers = {}) => {
    const answer = await bursts.call(method, tail, body, headers);
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
    return answer.body;
  };

  it("[M6] share one connection, short, slow and long ones mixed, and each gets its own response", async () => {
    bursts = await Bursts.in(server);
    let most = 0;
    await bursts.while(async () => {
      for (let n = 0; n < 5; n += 1) {
        await bursts.more(wide * 4);
        most = Math.max(most, bursts.connections());
      }
    });
    // By requests each of those that are under way has one.
    expect(most).toBeLessThan(fewConnections);
    await settled(server, bursts, ["ran"]);
  });

  it("[M6] across repeated kills of the agent each gets a response or is reported as interrupted, and none runs twice", async () => {
    bursts = await Bursts.in(server);
    await bursts.while(async () => {
      for (let n = 0; n < 3; n += 1) {
        process.kill(server.agentOf(bursts.id).pid, "SIGKILL");
        await bursts.more(wide * 3);
      }
    });
    expect(bursts.ends().operation_interrupted).toBeGreaterThan(0);
    await settled(server, bursts, cutOff);
  });

  it.each([
    ["agent", () => server.agentOf(bursts.id).pid],
    ["Worker", () => server.workerd.pid],
  ] as const)(
    "[M6] while the %s is stopped for some seconds all wait, and then get a response",
    async (_, pidOf) => {
      bursts = await Bursts.in(server);
      await bursts.while(async () => {
        const pid = pidOf();
        process.kill(pid, "SIGSTOP");
        try {
          await pause(stoppedMs);
        } finally {
          process.kill(pid, "SIGCONT");
        }
        await bursts.more(wide * 3);
      });
      await settled(server, bursts, ["ran"]);
    },
  );

  it("[M6] across pause, checkpoint and restore none runs twice, and later ones succeed", async () => {
    bursts = await Bursts.in(server);
    const refused = ["lease_pending", "lease_held"];
    await bursts.while(async () => {
      await done("POST", "/pause?force=true");
      await bursts.more(wide * 3);
      await done("POST", "/checkpoints", {}, waiting);
      await bursts.more(wide * 3);
    });
    await settled(server, bursts, [...cutOff, ...refused]);

    const saved = await done("POST", "/checkpoints", {}, waiting);
    const before = await bursts.ran();
    await bursts.while(async () => {
      await done("POST", `/checkpoints/${saved.id}/restore`, undefined, waiting);
      await bursts.more(wide * 3);
    });
    // What ran between the two is undone with the files.
    const after = await bursts.ran();
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.length).toBeGreaterThan(before.length);
    expect(new Set(after).size).toBe(after.length);
    expectEnds(bursts, [...cutOff, ...refused]);
    await nothingRuns(server, bursts);
  });

  it("[M6] when the sandbox is destroyed each ends, and nothing is left", async () => {
    bursts = await Bursts.in(server);
    const agent = server.agentOf(bursts.id);
    await bursts.while(async () => {
      await done("DELETE", "?force=true");
      await until("all have ended", () => (bursts.ends().sandbox_destroyed ?? 0) >= wide);
    });
    expectEnds(bursts, [...cutOff, "sandbox_destroyed"]);
    await until("its agent is gone", () => alive([agent]).length === 0);
  });

  it("[M6] commands whose callers disconnect end, and all others get a response", async () => {
    bursts = await Bursts.in(server);
    const leaving = new AbortController();
    const endless = (word: string) => ({ command: `echo ${word} >> ran; sleep 600`, stdout: "" });
    await bursts.while(async () => {
      const abandoned = Array.from({ length: 4 }, () => bursts.exec(endless, leaving.signal));
      // They have been handed over by then.
      await bursts.exec(slow);
      const soon = bursts.exec(endless, leaving.signal);
      await bursts.more(wide);
      expect(treeOf(server.agentOf(bursts.id).pid).length).toBeGreaterThan(5);
      leaving.abort();
      const ends = (await Promise.all([...abandoned, soon])).map(({ end }) => end);
      expect(ends).toEqual(Array.from({ length: 5 }, () => "cut"));
      await bursts.more(wide);
    });
    expect(bursts.ends().cut).toBe(5);
    await settled(server, bursts, ["ran", "cut"]);
  });

  it("[M7] end with their lease when it is broken, and nothing of them runs once the next holder has it", async () => {
    bursts = await Bursts.in(server);
    const lease = await done("POST", "/lease", { holder: "first", ttlMs: 60_000 });
    bursts.hold(lease.token);
    await bursts.while(async () => {
      await done("DELETE", "/lease?break=true&reason=to+see+it");
      const next = await done("POST", "/lease", { holder: "next", waitMs: 20_000 });
      const headers = underLease(next.token);
      const readRan = () => done("POST", "/exec", { command: "cat ran" }, headers);
      const { stdout: seen } = await readRan();
      expect(String(seen).length).toBeGreaterThan(0);
      await pause(500);
      expect((await readRan()).stdout).toBe(seen);
      await done("DELETE", "/lease", undefined, headers);
    });
    bursts.hold(undefined);
    expect(bursts.ends().lease_lost).toBeGreaterThan(0);
    await settled(server, bursts, [...cutOff, "lease_lost"]);
  });

  it("[M9] get the same response as a single command, whatever their input and output", async () => {
    bursts = await Bursts.in(server);
    const answered = async (call: Record<string, unknown>) => {
      const { status, body } = await bursts.call("POST", "/exec", call);
      const { execId, durationMs, requestId, ...rest } = body;
      return { status, ...rest };
    };
    const alone = new Map<string, unknown>();
    for (const [what, call] of odd) {
      await pause(apartMs);
      alone.set(what, await answered(call));
    }
    await bursts.row();
    const others = Array.from({ length: wide }, () => bursts.exec(short));
    const among = odd.map(async ([what, call]) => [what, await answered(call)] as const);
    expect(new Map(await Promise.all(among))).toEqual(alone);
    await Promise.all(others);
    expect(bursts.ends()).toEqual({ ran: bursts.results.length });
    await nothingRuns(server, bursts);
  });

  it("[M8] soon after the last one the channel is closed, and only reusable HTTP connections stay", async () => {
    bursts = await Bursts.in(server);
    const lost = async () => {
      const before = bursts.connections();
      await pause(quietMs);
      return before - bursts.connections();
    };
    // Those that wait for the next request stay for longer than that.
    await until("nothing is closed after one that comes alone", async () => {
      await bursts.exec(short);
      return (await lost()) === 0;
    });
    for (let round = 0; round < 3; round += 1) {
      await until("the line alone is closed after a row", async () => {
        await bursts.row();
        return (await lost()) === 1;
      });
    }
    expect(bursts.ends()).toEqual({ ran: bursts.results.length });
  });
});

describe("commands in quick succession, with kill -9 of the Worker", () => {
  const servers = new Restarts();

  it("[M6] repeated kills: none runs twice, every acknowledged one ran, and later ones succeed", async () => {
    let current = await servers.start();
    const bursts = await Bursts.in(current);
    for (let round = 0; round < 3; round += 1) {
      let next = current;
      await bursts.while(async () => {
        next = await servers.kill(current, "workerd");
      });
      expect(bursts.ends().cut).toBeGreaterThan(round);
      current = next;
      bursts.backOn(current);
      // A container that was lost often is only started on request.
      await bursts.exec(short);
      expect((await bursts.call("POST", "/start")).body).toMatchObject({ state: "running" });
    }
    await settled(current, bursts, [...cutOff, "cut", "not_running"]);
  });
});
