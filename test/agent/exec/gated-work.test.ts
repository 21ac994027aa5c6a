import { describe, expect, test } from "vitest";
import { Activity } from "../../../container/agent/activity.ts";
import { answerFence } from "../../../container/agent/server/drain.ts";
import { GatedWork } from "../../../container/agent/server/gated-work.ts";
import type { BerthError } from "../../../src/protocol/error-codes.ts";

const waitMs = 20_000;

/** The sources themselves: what runs as one binary is asked over the wire elsewhere. */
class Bench {
  readonly gated = new GatedWork(new Activity());
  collected = 0;

  /** Work that begins as a call does; it ends when it is told to, and not because it was interrupted. */
  begin(fence: number): { gone: AbortSignal; end: () => void } {
    this.gated.fence.pass(fence);
    const gone = new AbortController();
    let end = () => {};
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.gated.track(over, { fence, gone });
    return { gone: gone.signal, end };
  }

  async raise(fence: number, drain: boolean, wait: number): Promise<unknown> {
    const forest = { collect: async () => void this.collected++ };
    const body = JSON.stringify({ fence, drain, waitMs: wait });
    const request = new Request("http://agent/v1/fence", { method: "POST", body });
    return (await answerFence(request, { gated: this.gated, forest })).json();
  }
}

const stale = (fence: number) => expect.objectContaining({ code: "stale_fence", facts: { fence } });

describe("the fence of gated work", () => {
  test("[X50] nothing begins below one that was raised, by a call or by a word, and it never falls", async () => {
    const bench = new Bench();
    bench.begin(3).end();
    expect(() => bench.begin(2)).toThrow(stale(3));
    expect(await bench.raise(7, false, 0)).toEqual({ fence: 7, left: 0 });
    expect(await bench.raise(5, false, 0)).toEqual({ fence: 7, left: 0 });
    expect(() => bench.begin(6)).toThrow(stale(7));
    bench.begin(7).end();
    expect(bench.gated.fence.highest).toBe(7);
  });

  test("[X50] a drain interrupts what began below it, and nothing else, and confirms it when it has ended", async () => {
    const bench = new Bench();
    const below = bench.begin(3);
    const at = bench.begin(4);
    expect(await bench.raise(4, true, 0)).toEqual({ fence: 4, left: 1 });
    expect(below.gone.aborted).toBe(true);
    expect((below.gone.reason as BerthError).facts).toMatchObject({ reason: "lease_lost" });
    expect(at.gone.aborted).toBe(false);
    expect(bench.collected).toBe(0);
    const drained = bench.raise(4, true, waitMs);
    below.end();
    expect(await drained).toEqual({ fence: 4, left: 0 });
    expect(bench.collected).toBe(1);
    expect(bench.gated.size).toBe(1);
  });

  test("[X50] without a drain what runs below it goes on, and is counted", async () => {
    const bench = new Bench();
    const below = bench.begin(3);
    expect(await bench.raise(4, false, 0)).toEqual({ fence: 4, left: 1 });
    expect(below.gone.aborted).toBe(false);
    below.end();
    expect(await bench.raise(4, false, waitMs)).toEqual({ fence: 4, left: 0 });
  });
});
