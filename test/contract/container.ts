/** What an object may rely on in its container, whichever runtime runs it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ExecResult } from "../../src/protocol/exec.ts";
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
    beforeEach(() => {
      fresh();
    });
    const fresh = () => {
      id = `c${random(23)}`;
      container = subject.container(id);
    };
    const begin = async (call = options()) =>
      new Running(container, call, await container.start(call));

    it("[V1] start answers when the agent does, with an incarnation of this start id", async () => {
      const running = await begin();
      const { incarnation } = running.started;
      expect(incarnation).toMatch(new RegExp(`^${running.call.startId}\\.[a-z0-9]{16}$`));
      const health = await running.request(agentPaths.health);
      expect(health.status).toBe(200);
      expect(health.headers.get(agentHeaders.incarnation)).toBe(incarnation);
      expect(await health.json()).toMatchObject({ incarnation, running: 0 });
    });

    it("[V2] the same start id joins the same incarnation, now and later", async () => {
      const call = options();
      const both = await Promise.all([container.start(call), container.start(call)]);
      const later = await container.start(call);
      const incarnations = [...both, later].map(({ incarnation }) => incarnation);
      expect(new Set(incarnations).size).toBe(1);
      expect(later.files).toBe(both[0].files);
    });

    it("[V3] a new start id ends the previous incarnation and begins another on the same files", async () => {
      const before = await begin();
      const { startId } = before.call;
      const ended = keeps ? container.monitor(startId, limits.monitorWaitMaxMs) : undefined;
      const after = await begin();
      if (keeps) expect(await ended).toMatchObject({ reason: "destroyed" });
      expect(after.started.incarnation).not.toBe(before.started.incarnation);
      expect(after.started.files).toBe(keeps ? "kept" : "image");
      expect(await before.answers()).toBe(false);
      expect(await after.answers()).toBe(true);
    });

    it("[V4] an abandoned start id is never started again, however late it arrives", async () => {
      const first = await begin();
      const second = await begin();
      await expect(begin(first.call)).rejects.toMatchObject({ code: "start_failed" });
      expect(await second.answers()).toBe(true);
      await container.destroy("keep");
      await expect(begin(second.call)).rejects.toMatchObject({ code: "start_failed" });
    });

    it("[V5] destroy ends it; ending what does not run succeeds", async () => {
      await container.destroy("remove");
      const running = await begin();
      expect(await running.answers()).toBe(true);
      await container.destroy("keep");
      expect(await running.answers()).toBe(false);
      await container.destroy("keep");
      if (!keeps) return;
      expect(await container.monitor(running.call.startId, limits.monitorWaitMaxMs)).toMatchObject({
        reason: "destroyed",
      });
    });

    it.runIf(keeps)(
      "[V6] files are new at first, kept by `keep`, and new again after `remove`",
      async () => {
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
        const running = await begin();
        const { startId } = running.call;
        const exitReport = container.monitor(startId, limits.monitorWaitMaxMs);
        const result = running.exec("sleep 60").catch(() => "cut");
        await subject.crash(id);
        const exit = { exitCode: null, signal: "SIGKILL", reason: "exited" };
        expect(await exitReport).toEqual(exit);
        expect(await container.monitor(startId, limits.monitorWaitMaxMs)).toEqual(exit);
        expect(await result).toBe("cut");
        expect(await running.answers()).toBe(false);
        expect((await container.start(options())).files).toBe("kept");
      },
    );

    it.runIf(keeps)("[V8] monitor of an unknown incarnation resolves at once", async () => {
      const exit = await container.monitor(random(16), limits.monitorWaitMaxMs);
      expect(["engine_restarted", "unknown"]).toContain(exit?.reason);
    });

    it.runIf(keeps)("[V9] a signal reaches every command and not the agent", async () => {
      const running = await begin();
      const result = running.exec("sleep 60");
      await until(async () => (await running.health()).running === 1);
      let isOver = false;
      const over = () => {
        isOver = true;
      };
      result.then(over, over);
      // A process that is counted may be about to be born, and the signal may miss it.
      await until(async () => {
        await container.signal(15);
        return isOver;
      });
      // With or without a shell the result reports the signal, not the timeout.
      const { exitCode, signal, timedOut } = await result;
      expect(timedOut).toBe(false);
      expect([exitCode, signal]).not.toContainEqual(0);
      expect(signal ?? exitCode).toSatisfy((it: unknown) => it === "SIGTERM" || it === 143);
      expect(await running.answers()).toBe(true);
      fresh();
      await container.signal(15);
    });

    it("[V10] the agent accepts only the secret of its own start, and no call for another incarnation", async () => {
      const { call, started } = await begin();
      const stranger = new Running(container, { ...call, secret: random(32) }, started);
      const wrong = await stranger.request(agentPaths.health);
      expect(wrong.status).toBe(401);
      expect(wrong.headers.get(agentHeaders.incarnation)).toBe(started.incarnation);
      const incarnation = `${random(16)}.${random(16)}`;
      const stale = new Running(container, call, { ...started, incarnation });
      expect((await stale.request(agentPaths.health)).status).toBe(410);
    });

    it("[V11] the agent refuses a fence below one that it has seen", async () => {
      const running = await begin();
      expect((await running.exec("true", 7)).exitCode).toBe(0);
      await expect(running.exec("true", 6)).rejects.toThrow("409");
      expect((await running.exec("true", 7)).exitCode).toBe(0);
    });

    it("[V12] commands see the environment of start; results arrive as commands end", async () => {
      const running = await begin(options({ env: { GREETING: "good day" } }));
      const printed = await running.exec("printenv GREETING");
      expect(printed).toMatchObject({ exitCode: 0, stdout: "good day\n" });
      expect((await running.exec("false")).exitCode).toBe(1);
      expect((await running.exec("echo a b")).stdout).toBe("a b\n");
    });

    it("[V13] a start with a snapshot begins from its files; without files nothing can be saved", async () => {
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
        const running = await begin();
        expect(container.comparesTrees).toBe(true);
        const write = (path: string, text: string) =>
          running.changeFile("PUT", `path=/workspace/${path}&mkdirs=true`, text);
        await write("a/deep/stays", "1");
        await write("changes", "12");
        await write("goes", "123");
        const from = (await container.snapshot(`s${random(23)}`)).handle;
        expect(await container.changes({ from, to: from, listMax: 9 })).toEqual(nothing);
        await write("changes", "21");
        await write("b/comes", "12345");
        await running.changeFile("DELETE", "path=/workspace/goes");
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
      const running = await begin();
      const response = await running.request(`${agentPaths.ports}/8099/path?query=1`);
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

/** One start of a container, and the requests that its agent answers. */
class Running {
  readonly #container: ContainerRuntime;
  readonly call: StartOptions;
  readonly started: Started;

  constructor(container: ContainerRuntime, call: StartOptions, started: Started) {
    this.#container = container;
    this.call = call;
    this.started = started;
  }

  request(path: string, init: RequestInit = {}, fence = 1): Promise<Response> {
    const { address, incarnation } = this.started;
    const headers = {
      authorization: `Bearer ${this.call.secret}`,
      "content-type": "application/json",
      [agentHeaders.incarnation]: incarnation,
      [agentHeaders.fence]: String(fence),
    };
    // Cloudflare has one agent per container, which needs no address.
    const base = address === "" ? "http://agent" : address;
    return this.#container.agent(address, new Request(`${base}${path}`, { headers, ...init }));
  }

  async health(): Promise<{ incarnation: string; running: number }> {
    return (await this.request(agentPaths.health)).json();
  }

  /** Whether this incarnation answers: another may have its address by now. */
  async answers(): Promise<boolean> {
    try {
      return (await this.request(agentPaths.health)).status === 200;
    } catch {
      return false;
    }
  }

  async exec(command: string, fence = 1): Promise<Answer> {
    const body = JSON.stringify({
      ...{ command, timeoutMs: 30_000, maxOutputBytes: 10_000, encoding: "utf8" },
      ...{ execId: random(16), requestId: "contract" },
    });
    const response = await this.request(agentPaths.exec, { method: "POST", body }, fence);
    const text = await response.text();
    if (!response.ok) throw new Error(`exec answered ${response.status}: ${text}`);
    return JSON.parse(text) as Answer;
  }

  async changeFile(method: "PUT" | "DELETE", query: string, body: string | null = null) {
    const response = await this.request(`${agentPaths.files}?${query}`, { method, body });
    if (!response.ok) throw new Error(`${method} answered ${response.status}`);
    await response.body?.cancel();
  }
}

type Answer = Pick<ExecResult, "exitCode" | "signal" | "timedOut" | "stdout">;

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
