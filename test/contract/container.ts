/** What an object may rely on in its container, whichever runtime runs it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentHeaders, agentPaths } from "../../src/protocol/internal/agent.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { ContainerRuntime, Started, StartOptions } from "../../src/runtime/runtime.ts";

export type Subject = {
  container(id: string): ContainerRuntime;
  /** Kills its agent with SIGKILL, as the kernel would for lack of memory. */
  crash(id: string): Promise<void>;
  close(): Promise<void>;
};

/** `kind`: Cloudflare's containers forget files and past incarnations, and a signal reaches the agent too. */
export function containerContract(
  name: string,
  make: () => Promise<Subject>,
  kind: "engine" | "platform" = "engine",
): void {
  const keeps = kind === "engine";
  describe(`a container of ${name}`, () => {
    let subject: Subject;
    let id: string;
    let container: ContainerRuntime;

    beforeAll(async () => {
      subject = await make();
    });
    afterAll(async () => {
      await subject.close();
    });
    const fresh = () => {
      id = `c${random(23)}`;
      container = subject.container(id);
    };

    it("[V1] start answers when the agent does, with an incarnation of this start id", async () => {
      fresh();
      const call = options();
      const started = await container.start(call);
      expect(started.incarnation).toMatch(new RegExp(`^${call.startId}\\.[a-z0-9]{16}$`));
      const health = await ask(container, started, call, agentPaths.health);
      expect(health.status).toBe(200);
      expect(health.headers.get(agentHeaders.incarnation)).toBe(started.incarnation);
      expect(await health.json()).toMatchObject({ incarnation: started.incarnation, running: 0 });
    });

    it("[V2] the same start id joins the same incarnation, now and later", async () => {
      fresh();
      const call = options();
      const both = await Promise.all([container.start(call), container.start(call)]);
      const later = await container.start(call);
      const incarnations = [...both, later].map(({ incarnation }) => incarnation);
      expect(new Set(incarnations).size).toBe(1);
      expect(later.files).toBe(both[0].files);
    });

    it("[V3] a new start id ends the previous incarnation and begins another on the same files", async () => {
      fresh();
      const first = options();
      const before = await container.start(first);
      const ended = keeps ? container.monitor(first.startId, limits.monitorWaitMaxMs) : undefined;
      const second = options();
      const after = await container.start(second);
      if (keeps) expect(await ended).toMatchObject({ reason: "destroyed" });
      expect(after.incarnation).not.toBe(before.incarnation);
      expect(after.files).toBe(keeps ? "kept" : "image");
      expect(await answers(container, before, first)).toBe(false);
      expect(await answers(container, after, second)).toBe(true);
    });

    it("[V4] an abandoned start id is never started again, however late it arrives", async () => {
      fresh();
      const first = options();
      await container.start(first);
      const second = options();
      const started = await container.start(second);
      await expect(container.start(first)).rejects.toMatchObject({ code: "start_failed" });
      expect(await answers(container, started, second)).toBe(true);
      await container.destroy("keep");
      await expect(container.start(second)).rejects.toMatchObject({ code: "start_failed" });
    });

    it("[V5] destroy ends it; ending what does not run succeeds", async () => {
      fresh();
      await container.destroy("remove");
      const call = options();
      const started = await container.start(call);
      expect(await answers(container, started, call)).toBe(true);
      await container.destroy("keep");
      expect(await answers(container, started, call)).toBe(false);
      await container.destroy("keep");
      if (!keeps) return;
      expect(await container.monitor(call.startId, limits.monitorWaitMaxMs)).toMatchObject({
        reason: "destroyed",
      });
    });

    it.runIf(keeps)(
      "[V6] files are new at first, kept by `keep`, and new again after `remove`",
      async () => {
        fresh();
        expect((await container.start(options())).files).toBe("new");
        await container.destroy("keep");
        expect((await container.start(options())).files).toBe("kept");
        await container.destroy("remove");
        expect((await container.start(options())).files).toBe("new");
      },
    );

    it.runIf(keeps)(
      "[V7] monitor reports the death of an agent, whether it is asked before or after",
      async () => {
        fresh();
        const call = options();
        const started = await container.start(call);
        const exitReport = container.monitor(call.startId, limits.monitorWaitMaxMs);
        const running = exec(container, started, call, "sleep 60").catch(() => "cut");
        await subject.crash(id);
        const exit = { exitCode: null, signal: "SIGKILL", reason: "exited" };
        expect(await exitReport).toEqual(exit);
        expect(await container.monitor(call.startId, limits.monitorWaitMaxMs)).toEqual(exit);
        expect(await running).toBe("cut");
        expect(await answers(container, started, call)).toBe(false);
        expect((await container.start(options())).files).toBe("kept");
      },
    );

    it.runIf(keeps)("[V8] monitor of an unknown incarnation resolves at once", async () => {
      fresh();
      const exit = await container.monitor(random(16), limits.monitorWaitMaxMs);
      expect(["engine_restarted", "unknown"]).toContain(exit?.reason);
    });

    it.runIf(keeps)("[V9] a signal reaches every command and not the agent", async () => {
      fresh();
      const call = options();
      const started = await container.start(call);
      const running = exec(container, started, call, "sleep 60");
      await until(async () => (await health(container, started, call)).running === 1);
      let isOver = false;
      const over = () => {
        isOver = true;
      };
      running.then(over, over);
      // A process that is counted may be about to be born, and the signal may miss it.
      await until(async () => {
        await container.signal(15);
        return isOver;
      });
      // With or without a shell the result reports the signal, not the timeout.
      const { exitCode, signal, timedOut } = await running;
      expect(timedOut).toBe(false);
      expect([exitCode, signal]).not.toContainEqual(0);
      expect(signal ?? exitCode).toSatisfy((it: unknown) => it === "SIGTERM" || it === 143);
      expect(await answers(container, started, call)).toBe(true);
      fresh();
      await container.signal(15);
    });

    it("[V10] the agent accepts only the secret of its own start, and no call for another incarnation", async () => {
      fresh();
      const call = options();
      const started = await container.start(call);
      const wrong = await ask(
        container,
        started,
        { ...call, secret: random(32) },
        agentPaths.health,
      );
      expect(wrong.status).toBe(401);
      expect(wrong.headers.get(agentHeaders.incarnation)).toBe(started.incarnation);
      const stale = { ...started, incarnation: `${random(16)}.${random(16)}` };
      expect((await ask(container, stale, call, agentPaths.health)).status).toBe(410);
    });

    it("[V11] the agent refuses a fence below one that it has seen", async () => {
      fresh();
      const call = options();
      const started = await container.start(call);
      expect((await exec(container, started, call, "true", 7)).exitCode).toBe(0);
      await expect(exec(container, started, call, "true", 6)).rejects.toThrow("409");
      expect((await exec(container, started, call, "true", 7)).exitCode).toBe(0);
    });

    it("[V12] commands see the environment of start; results arrive as commands end", async () => {
      fresh();
      const call = options({ env: { GREETING: "good day" } });
      const started = await container.start(call);
      const said = await exec(container, started, call, "printenv GREETING");
      expect(said).toMatchObject({ exitCode: 0, stdout: "good day\n" });
      expect((await exec(container, started, call, "false")).exitCode).toBe(1);
      expect((await exec(container, started, call, "echo a b")).stdout).toBe("a b\n");
    });

    it("[V13] a start with a snapshot begins from its files; without files nothing can be saved", async () => {
      fresh();
      const snapshotId = `s${random(23)}`;
      await expect(container.snapshot(snapshotId)).rejects.toMatchObject({ code: "not_running" });
      await container.start(options());
      const { handle, bytes } = await container.snapshot(snapshotId);
      expect(bytes).toBeGreaterThan(0);
      expect((await container.start(options({ snapshot: handle }))).files).toBe("snapshot");
      const absent = options({ snapshot: `s${random(23)}` });
      await expect(container.start(absent)).rejects.toMatchObject({ code: "start_failed" });
    });

    it.runIf(keeps)(
      "[V15] two snapshots are compared: added, modified, deleted; without an older one everything is added",
      async () => {
        fresh();
        const call = options();
        const started = await container.start(call);
        expect(container.comparesTrees).toBe(true);
        const write = (path: string, text: string) =>
          file(container, started, call, "PUT", `path=/workspace/${path}&mkdirs=true`, text);
        await write("a/deep/stays", "1");
        await write("changes", "12");
        await write("goes", "123");
        const from = (await container.snapshot(`s${random(23)}`)).handle;
        expect(await container.changes({ from, to: from, listMax: 9 })).toEqual(nothing);
        await write("changes", "21");
        await write("b/comes", "12345");
        await file(container, started, call, "DELETE", "path=/workspace/goes");
        const to = (await container.snapshot(`s${random(23)}`)).handle;
        expect(await container.changes({ from, to, listMax: 9 })).toEqual({
          ...{ added: ["b/comes"], modified: ["changes"], deleted: ["goes"] },
          ...{ counts: { added: 1, modified: 1, deleted: 1 }, bytes: 7 },
        });
        expect(await container.changes({ from, to, listMax: 1 })).toMatchObject({
          ...{ added: ["b/comes"], modified: [], deleted: [] },
          ...{ counts: { added: 1, modified: 1, deleted: 1 }, bytes: 7 },
        });
        expect(await container.changes({ to, listMax: 9 })).toEqual({
          ...{ added: ["a/deep/stays", "b/comes", "changes"], modified: [], deleted: [] },
          ...{ counts: { added: 3, modified: 0, deleted: 0 }, bytes: 8 },
        });
        await container.start(options({ snapshot: from }));
        const back = (await container.snapshot(`s${random(23)}`)).handle;
        expect(await container.changes({ from, to: back, listMax: 9 })).toEqual(nothing);
        await container.removeSnapshot(to);
        const comparison = container.changes({ from, to, listMax: 9 });
        await expect(comparison).rejects.toMatchObject({ code: "not_found" });
      },
    );

    it("[V14] a port that nobody serves is reported as unreachable", async () => {
      fresh();
      const call = options();
      const { address, incarnation } = await container.start(call);
      const headers = {
        authorization: `Bearer ${call.secret}`,
        [agentHeaders.incarnation]: incarnation,
      };
      const request = new Request(`${baseOf({ address })}${agentPaths.ports}/8099/path?query=1`, {
        headers,
      });
      const response = await container.agent(address, request);
      expect(response.status).toBe(502);
      expect(await response.json()).toMatchObject({ error: { code: "port_unreachable" } });
    });
  });
}

function options(over: Partial<StartOptions> = {}): StartOptions {
  return {
    startId: random(16),
    secret: random(40),
    env: {},
    network: { internet: false },
    ...over,
  };
}

const nothing = {
  ...{ added: [], modified: [], deleted: [] },
  ...{ counts: { added: 0, modified: 0, deleted: 0 }, bytes: 0 },
};

async function file(
  container: ContainerRuntime,
  { address, incarnation }: Started,
  { secret }: StartOptions,
  method: "PUT" | "DELETE",
  query: string,
  text?: string,
): Promise<void> {
  const headers = {
    authorization: `Bearer ${secret}`,
    [agentHeaders.incarnation]: incarnation,
    [agentHeaders.fence]: "1",
  };
  const request = new Request(`${address}${agentPaths.files}?${query}`, {
    ...{ method, headers },
    ...(text === undefined ? {} : { body: text }),
  });
  const response = await container.agent(address, request);
  if (!response.ok) throw new Error(`${method} answered ${response.status}`);
  await response.body?.cancel();
}

type Health = { running: number };

async function health(
  container: ContainerRuntime,
  started: Started,
  call: StartOptions,
): Promise<Health> {
  return (await (await ask(container, started, call, agentPaths.health)).json()) as Health;
}

/** Whether this incarnation answers: another may have its address by now. */
async function answers(
  container: ContainerRuntime,
  started: Started,
  call: StartOptions,
): Promise<boolean> {
  try {
    return (await ask(container, started, call, agentPaths.health)).status === 200;
  } catch {
    return false;
  }
}

function ask(
  container: ContainerRuntime,
  started: Started,
  call: StartOptions,
  path: string,
  body?: object,
  fence = 1,
) {
  const headers = {
    authorization: `Bearer ${call.secret}`,
    "content-type": "application/json",
    [agentHeaders.incarnation]: started.incarnation,
    [agentHeaders.fence]: String(fence),
  };
  const request = new Request(`${baseOf(started)}${path}`, {
    headers,
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
  return container.agent(started.address, request);
}

/** Cloudflare has one agent per container, which needs no address. */
function baseOf({ address }: Pick<Started, "address">): string {
  return address === "" ? "http://agent" : address;
}

type Answer = {
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  stdout: string;
};

async function exec(
  container: ContainerRuntime,
  started: Started,
  call: StartOptions,
  command: string,
  fence = 1,
): Promise<Answer> {
  const response = await ask(
    container,
    started,
    call,
    agentPaths.exec,
    {
      ...{ command, timeoutMs: 30_000, maxOutputBytes: 10_000, encoding: "utf8" },
      ...{ execId: random(16), requestId: "contract" },
    },
    fence,
  );
  const text = await response.text();
  if (!response.ok) throw new Error(`exec answered ${response.status}: ${text}`);
  return JSON.parse(text) as Answer;
}

async function until(done: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await done())) {
    if (Date.now() > deadline) throw new Error("not within 20 s");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function random(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  return Array.from(bytes, (byte) => (byte % 36).toString(36)).join("");
}
