/** Moments that no connection can hit: a channel that closes while a response is made, sent or fetched. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Channel, DeferredResponses } from "../../../container/agent/server/channel.ts";
import {
  deferredStatus,
  readResult,
  writeCall,
} from "../../../src/protocol/internal/agent-channel.ts";
import { limits } from "../../../src/protocol/limits.ts";

const call = writeCall({ id: "e", path: "/v1/exec", fence: 0, requestId: "r", body: "{}" });
const large = () => new Response("x".repeat(limits.wholeResponseBytesMax + 1));

/** A channel whose calls the test answers. */
class Harness {
  readonly sent: (string | number)[] = [];
  readonly deferred = new DeferredResponses();
  readonly signals: AbortSignal[] = [];
  readonly answers: ((response: Response) => void)[] = [];
  readonly channel = new Channel((request) => {
    this.signals.push(request.signal);
    return new Promise((resolve) => this.answers.push(resolve));
  }, this.deferred);
  readonly #socket = {
    send: (message: string) => this.sent.push(readResult(message)?.status ?? message),
    close: (code: number) => this.sent.push(`closed ${code}`),
  };

  receive(message: string): void {
    this.channel.message(this.#socket, message);
  }

  /** Throws if no response waits. */
  take(signal?: AbortSignal): Response {
    const init = signal === undefined ? {} : { signal };
    return this.deferred.take(new Request("http://agent/v1/later/e", init), "/v1/later/e");
  }
}

describe("inside a channel", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });
  /** Runs everything that needs no time. */
  const settle = () => vi.advanceTimersByTimeAsync(0);

  test("[X57] a response that is ready when the channel closes is dropped", async () => {
    const harness = new Harness();
    harness.receive(call);
    const response = large();
    const bytes = response.bytes.bind(response);
    response.bytes = async () => {
      harness.channel.close();
      return bytes();
    };
    harness.answers[0]?.(response);
    await settle();
    expect(harness.signals[0]?.aborted).toBe(true);
    expect(harness.sent).toEqual([]);
    expect(() => harness.take()).toThrow("No response waits");
  });

  test("[X57] a deferred response ends with the request that fetches it, not with the channel", async () => {
    const harness = new Harness();
    harness.receive(call);
    harness.answers[0]?.(large());
    await vi.waitFor(() => expect(harness.sent).toEqual([deferredStatus]));
    harness.channel.close();
    expect(harness.signals[0]?.aborted).toBe(false);
    const caller = new AbortController();
    const text = await harness.take(caller.signal).text();
    expect(text.length).toBe(limits.wholeResponseBytesMax + 1);
    caller.abort();
    expect(harness.signals[0]?.aborted).toBe(true);
  });

  test("[X57] a caller that disconnects before the fetch ends it", async () => {
    const harness = new Harness();
    harness.receive(call);
    harness.answers[0]?.(large());
    await vi.waitFor(() => expect(harness.sent).toEqual([deferredStatus]));
    harness.take(AbortSignal.abort());
    expect(harness.signals[0]?.aborted).toBe(true);
  });

  test("[X56] a deferred response is dropped after its time, and a new one gets the whole time", async () => {
    const deferred = new DeferredResponses();
    const [first, second] = [new AbortController(), new AbortController()];
    deferred.add("e", large(), first);
    await vi.advanceTimersByTimeAsync(limits.agentHeadersMs - 1);
    expect(first.signal.aborted).toBe(false);
    deferred.add("e", large(), second);
    expect(first.signal.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(limits.agentHeadersMs - 1);
    expect(second.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(second.signal.aborted).toBe(true);
  });

  test("[X54] a message that is not a call is not handled", () => {
    const harness = new Harness();
    harness.receive("not a call");
    expect(harness.sent).toEqual(["closed 1002"]);
    expect(harness.signals).toEqual([]);
  });
});
