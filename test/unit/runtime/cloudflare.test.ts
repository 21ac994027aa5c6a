/** The platform's container, over a stand-in for `ctx.container`: what a real one is too slow or too orderly to show. */
import { scheduler } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { agentHeaders } from "../../../src/protocol/internal/agent.ts";
import { chooseRuntime } from "../../../src/runtime/choose.ts";
import type { StartOptions } from "../../../src/runtime/runtime.ts";

const health = { protocol: 1, tree: "subreaper", running: 0, fence: 0 };

/** It has an agent, of the start that came last, from when `boot` was called. */
class Attached {
  running = false;
  readonly images = { default: "image" };
  readonly started: string[] = [];
  readonly asked: object[] = [];
  destroyed = 0;
  #booted = false;
  answer = (_request: Request): Response => Response.json({ ...health, incarnation: this.life });

  get life(): string {
    return `${this.started.at(-1)}.life`;
  }
  boot(): void {
    this.#booted = true;
  }
  start({ env, ...asked }: { env: { BERTH_BOOT: string }; instance?: unknown }): void {
    if (this.running) throw new Error("it is running already");
    this.asked.push(asked);
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
        if (!this.running || !this.#booted) throw new Error("nobody listens");
        const response = this.answer(request);
        response.headers.set(agentHeaders.incarnation, this.life);
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

describe("the platform's container", () => {
  beforeAll(() => void vi.stubGlobal("scheduler", scheduler));
  afterAll(() => void vi.unstubAllGlobals());

  it("[DK3] starts once for calls of one start, and goes on with none that was given up", async () => {
    const attached = new Attached();
    const container = open(attached);
    const first = [container.start(call("a")), container.start(call("a"))];
    const second = container.start(call("b"));
    const refused = { code: "start_failed" };
    for (const one of first) await expect(one).rejects.toMatchObject(refused);
    attached.boot();
    expect((await second).incarnation).toBe(`${"b".repeat(16)}.life`);
    await expect(container.start(call("a"))).rejects.toMatchObject(refused);
    expect(attached.started.at(-1)).toBe("b".repeat(16));
    expect(attached.started.length).toBeLessThanOrEqual(2);
    await container.destroy("remove");
    expect(attached.running).toBe(false);
    await expect(container.start(call("b"))).rejects.toMatchObject(refused);
  });

  it("[V17] asks for the machine of its size, from an image and from a saved tree alike", async () => {
    const attached = new Attached();
    attached.boot();
    const container = open(attached);
    const machine = { vcpu: 2, memoryMib: 8192, diskMb: 16000 };
    const basic = { name: "small", instance: "basic", processes: 64 } as const;
    await container.start({ ...call("a"), size: basic });
    await container.start({ ...call("b"), size: { name: "own", instance: machine } });
    await container.start({ ...call("c"), size: basic, snapshot: "saved" });
    await container.start(call("d"));
    expect(attached.asked).toEqual([
      { image: "image", instance: "basic", enableInternet: false },
      { image: "image", instance: machine, enableInternet: false },
      { containerSnapshot: { id: "saved" }, instance: "basic", enableInternet: false },
      { image: "image", enableInternet: false },
    ]);
    const room = container.start({ ...call("e"), size: { name: "room", memoryBytes: 2 ** 30 } });
    await expect(room).rejects.toMatchObject({ code: "unsupported", facts: { field: "size" } });
    expect(attached.asked).toHaveLength(4);
  });

  it("[DK12] tells at once where the platform has not begun: of a saved tree that this is gone, else to try again", async () => {
    const attached = new Attached();
    const container = open(attached);
    const saved = container.start({ ...call("a"), snapshot: "gone" });
    const noticed = setInterval(() => {
      attached.running = false;
    }, 5);
    await expect(saved).rejects.toMatchObject({
      code: "start_failed",
      facts: { reason: "snapshot_missing" },
    });
    await expect(container.start(call("b"))).rejects.toMatchObject({ code: "unavailable" });
    clearInterval(noticed);
    await expect(container.snapshot("s")).rejects.toMatchObject({ code: "not_running" });
  });

  it("[DK13] passes a refusal on although its end is not told while the body is on its way", async () => {
    const attached = new Attached();
    const container = open(attached);
    const started = container.start(call("a"));
    attached.boot();
    await started;
    const told = JSON.stringify({ error: { code: "operation_interrupted" } });
    let cancelled = 0;
    attached.answer = () => {
      const body = new ReadableStream({
        start: (to) => to.enqueue(new TextEncoder().encode(told)),
        cancel: () => {
          cancelled += 1;
        },
      });
      return new Response(body, { status: 502, headers: { "content-length": `${told.length}` } });
    };
    const put = { method: "PUT", body: new Uint8Array(9) };
    const refused = await container.agent("", new Request("http://agent/v1/files", put));
    expect([refused.status, await refused.text()]).toEqual([502, told]);
    expect(refused.headers.get(agentHeaders.incarnation)).toBe(attached.life);
    expect(cancelled).toBe(1);
  });
});
