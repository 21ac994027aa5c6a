import { describe, expect, test } from "vitest";
import { Activity } from "../../../container/agent/activity.ts";
import { GatedWork, handleFence } from "../../../container/agent/server/gated-work.ts";
import type { BerthError } from "../../../src/protocol/error-codes.ts";

const waitMs = 20_000;

/** Uses the classes directly; other tests call the agent's program over HTTP. */
class Harness {
  readonly gated = new GatedWork(new Activity());
  reaped = 0;

  /** Starts work like a call; it ends when `end` is called, not when it is interrupted. */
  start(fence: number): { signal: AbortSignal; end: () => void } {
    this.gated.fence.pass(fence);
    const controller = new AbortController();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.gated.track(ended, { fence, controller });
    return { signal: controller.signal, end };
  }

  async raise(fence: number, drain: boolean, wait: number): Promise<unknown> {
    const supervisor = { reapOrphans: async () => void this.reaped++ };
    const body = JSON.stringify({ fence, drain, waitMs: wait });
    const request = new Request("http://agent/v1/fence", { method: "POST", body });
    return (await handleFence(request, { gated: this.gated, supervisor })).json();
  }
}

const stale = (fence: number) => expect.objectContaining({ code: "stale_fence", facts: { fence } });

describe("the fence of gated work", () => {
  test("[X50] nothing starts below a fence that a call or a fence call has raised, and it never falls", async () => {
    const harness = new Harness();
    harness.start(3).end();
    expect(() => harness.start(2)).toThrow(stale(3));
    expect(await harness.raise(7, false, 0)).toEqual({ fence: 7, left: 0 });
    expect(await harness.raise(5, false, 0)).toEqual({ fence: 7, left: 0 });
    expect(() => harness.start(6)).toThrow(stale(7));
    harness.start(7).end();
    expect(harness.gated.fence.highest).toBe(7);
  });

  test("[X50] a drain interrupts what started below it, nothing else, and confirms it when it has ended", async () => {
    const harness = new Harness();
    const below = harness.start(3);
    const current = harness.start(4);
    expect(await harness.raise(4, true, 0)).toEqual({ fence: 4, left: 1 });
    expect(below.signal.aborted).toBe(true);
    expect((below.signal.reason as BerthError).facts).toMatchObject({ reason: "lease_lost" });
    expect(current.signal.aborted).toBe(false);
    expect(harness.reaped).toBe(0);
    const drained = harness.raise(4, true, waitMs);
    below.end();
    expect(await drained).toEqual({ fence: 4, left: 0 });
    expect(harness.reaped).toBe(1);
    expect(harness.gated.size).toBe(1);
  });

  test("[X50] without a drain, work below the fence continues and is counted", async () => {
    const harness = new Harness();
    const below = harness.start(3);
    expect(await harness.raise(4, false, 0)).toEqual({ fence: 4, left: 1 });
    expect(below.signal.aborted).toBe(false);
    below.end();
    expect(await harness.raise(4, false, waitMs)).toEqual({ fence: 4, left: 0 });
  });
});
