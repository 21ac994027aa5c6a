/** The Cloudflare runtime over a fake `ctx.container`, which can fail in ways that a real one rarely does. */
import { scheduler } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { agentHeaders } from "../../../src/protocol/internal/agent.ts";
import { chooseRuntime } from "../../../src/runtime/choose.ts";
import type { StartOptions } from "../../../src/runtime/runtime.ts";

const health = { protocol: 1, tree: "subreaper", running: 0, fence: 0 };

/** Its agent belongs to the latest start and responds once `boot` was called. */
class Attached {
  running = false;
  readonly images = { default: "image" };
  readonly started: string[] = [];
  readonly calls: object[] = [];
  destroyed = 0;
  #booted = false;
  respond = (_request: Request): Response =>
    Response.json({ ...health, incarnation: this.incarnation });

  get incarnation(): string {
    return `${this.started.at(-1)}.incarnation`;
  }
  boot(): void {
    this.#booted = true;
  }
  start({
    env,
    labels: _labels,
    ...call
  }: {
    env: { BERTH_BOOT: string };
    labels: object;
    instance?: unknown;
  }): void {
    if (this.running) throw new Error("it is running already");
    this.calls.push(call);
    this.started.push(JSON.parse(env.BERTH_BOOT).startId);
    this.running = true;
  }
  async destroy(): Promise<void> {
    this.destroyed += 1;
    this.running = false;
  }
  async setInactivityTimeout(): Promise<void> {}
  async snapshotContainer(): Promise<never> {
    throw new Error("it is not running");
  }
  getTcpPort() {
    return {
      fetch: async (request: Request) => {
        if (!this.running || !this.#booted) throw new Error("connection refused");
        const response = this.respond(request);
        response.headers.set(agentHeaders.incarnation, this.incarnation);
        return response;
      },
    };
  }
}

const open = (attached: Attached) =>
  chooseRuntime({ container: attached, exports: {}, id: "object" } as never, undefined, "a", {
    internet: false,
  });

const call = (letter: string): StartOptions => ({
  startId: letter.repeat(16),
  secret: "s".repeat(40),
  env: {},
  network: { internet: false },
});

describe("the Cloudflare runtime", () => {
  beforeAll(() => void vi.stubGlobal("scheduler", scheduler));
  afterAll(() => void vi.unstubAllGlobals());

  it("[DK3] starts once for calls with one start id, and never continues an abandoned start", async () => {
    const attached = new Attached();
    const runtime = open(attached);
    const first = [runtime.start(call("a")), runtime.start(call("a"))];
    const second = runtime.start(call("b"));
    const refused = { code: "start_failed" };
    for (const start of first) await expect(start).rejects.toMatchObject(refused);
    attached.boot();
    expect((await second).incarnation).toBe(`${"b".repeat(16)}.incarnation`);
    await expect(runtime.start(call("a"))).rejects.toMatchObject(refused);
    expect(attached.started.at(-1)).toBe("b".repeat(16));
    expect(attached.started.length).toBeLessThanOrEqual(2);
    await runtime.destroy("remove");
    expect(attached.running).toBe(false);
    await expect(runtime.start(call("b"))).rejects.toMatchObject(refused);
  });

  it("[V17] requests the instance type of its size, both from an image and from a saved tree", async () => {
    const attached = new Attached();
    attached.boot();
    const runtime = open(attached);
    const machine = { vcpu: 2, memoryMib: 8192, diskMb: 16000 };
    const basic = { name: "small", instance: "basic", processes: 64 } as const;
    await runtime.start({ ...call("a"), size: basic });
    await runtime.start({ ...call("b"), size: { name: "own", instance: machine } });
    await runtime.start({ ...call("c"), size: basic, snapshot: "saved" });
    await runtime.start(call("d"));
    expect(attached.calls).toEqual([
      { image: "image", instance: "basic", enableInternet: false },
      { image: "image", instance: machine, enableInternet: false },
      { containerSnapshot: { id: "saved" }, instance: "basic", enableInternet: false },
      { image: "image", enableInternet: false },
    ]);
    const withoutInstance = runtime.start({
      ...call("e"),
      size: { name: "memory", memoryBytes: 2 ** 30 },
    });
    await expect(withoutInstance).rejects.toMatchObject({
      code: "unsupported",
      facts: { field: "size" },
    });
    expect(attached.calls).toHaveLength(4);
  });

  it("[DK12] reports at once that the platform has not started: a missing snapshot for a saved tree, otherwise a retry", async () => {
    const attached = new Attached();
    const runtime = open(attached);
    const saved = runtime.start({ ...call("a"), snapshot: "gone" });
    const noticed = setInterval(() => {
      attached.running = false;
    }, 5);
    await expect(saved).rejects.toMatchObject({
      code: "start_failed",
      facts: { reason: "snapshot_missing" },
    });
    await expect(runtime.start(call("b"))).rejects.toMatchObject({ code: "unavailable" });
    clearInterval(noticed);
    await expect(runtime.snapshot("s")).rejects.toMatchObject({ code: "not_running" });
  });

  it("[DK13] forwards an error response whose end is not reported while the request body is being sent", async () => {
    const attached = new Attached();
    const runtime = open(attached);
    const started = runtime.start(call("a"));
    attached.boot();
    await started;
    const error = JSON.stringify({ error: { code: "operation_interrupted" } });
    let cancelled = 0;
    attached.respond = () => {
      const body = new ReadableStream({
        start: (to) => to.enqueue(new TextEncoder().encode(error)),
        cancel: () => {
          cancelled += 1;
        },
      });
      return new Response(body, { status: 502, headers: { "content-length": `${error.length}` } });
    };
    const put = { method: "PUT", body: new Uint8Array(9) };
    const refused = await runtime.agent("", new Request("http://agent/v1/files", put));
    expect([refused.status, await refused.text()]).toEqual([502, error]);
    expect(refused.headers.get(agentHeaders.incarnation)).toBe(attached.incarnation);
    expect(cancelled).toBe(1);
  });
});
