/** The moments of a line that no wire can hit: an end while an answer is being made, told, or taken. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Line } from "../../../container/agent/server/channel.ts";
import { Later } from "../../../container/agent/server/deferred.ts";
import { later, readAnswer, writeCall } from "../../../src/protocol/internal/agent-channel.ts";
import { limits } from "../../../src/protocol/limits.ts";

const call = writeCall({ id: "e", path: "/v1/exec", fence: 0, requestId: "r", body: "{}" });
const large = () => new Response("x".repeat(limits.answerWholeBytesMax + 1));

/** A line whose calls are answered by the test. */
class Bench {
  readonly told: (string | number)[] = [];
  readonly later = new Later();
  readonly signals: AbortSignal[] = [];
  readonly answers: ((response: Response) => void)[] = [];
  readonly line = new Line((request) => {
    this.signals.push(request.signal);
    return new Promise((resolve) => this.answers.push(resolve));
  }, this.later);
  readonly #socket = {
    send: (message: string) => this.told.push(readAnswer(message)?.status ?? message),
    close: (code: number) => this.told.push(`closed ${code}`),
  };

  say(message: string): void {
    this.line.message(this.#socket, message);
  }

  /** Throws where none waits. */
  take(signal?: AbortSignal): Response {
    const init = signal === undefined ? {} : { signal };
    return this.later.take(new Request("http://agent/v1/later/e", init), "/v1/later/e");
  }
}

describe("inside a line", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });
  /** All that follows by itself. */
  const settle = () => vi.advanceTimersByTimeAsync(0);

  test("[X57] an answer that is made as the line ends is nobody's", async () => {
    const bench = new Bench();
    bench.say(call);
    const response = large();
    const bytes = response.bytes.bind(response);
    response.bytes = async () => {
      bench.line.close();
      return bytes();
    };
    bench.answers[0]?.(response);
    await settle();
    expect(bench.signals[0]?.aborted).toBe(true);
    expect(bench.told).toEqual([]);
    expect(() => bench.take()).toThrow("no answer waits");
  });

  test("[X57] what was handed over is not the line's to end, but of whoever takes it", async () => {
    const bench = new Bench();
    bench.say(call);
    bench.answers[0]?.(large());
    await vi.waitFor(() => expect(bench.told).toEqual([later]));
    bench.line.close();
    expect(bench.signals[0]?.aborted).toBe(false);
    const taker = new AbortController();
    expect((await bench.take(taker.signal).text()).length).toBe(limits.answerWholeBytesMax + 1);
    taker.abort();
    expect(bench.signals[0]?.aborted).toBe(true);
  });

  test("[X57] one who has gone before he took it ends it", async () => {
    const bench = new Bench();
    bench.say(call);
    bench.answers[0]?.(large());
    await vi.waitFor(() => expect(bench.told).toEqual([later]));
    bench.take(AbortSignal.abort());
    expect(bench.signals[0]?.aborted).toBe(true);
  });

  test("[X56] what waits is let go after its time, and what is kept anew has all of it", async () => {
    const waiting = new Later();
    const [first, second] = [new AbortController(), new AbortController()];
    waiting.keep("e", large(), first);
    await vi.advanceTimersByTimeAsync(limits.agentHeadersMs - 1);
    expect(first.signal.aborted).toBe(false);
    waiting.keep("e", large(), second);
    expect(first.signal.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(limits.agentHeadersMs - 1);
    expect(second.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(second.signal.aborted).toBe(true);
  });

  test("[X54] what is no call does not reach what answers calls", () => {
    const bench = new Bench();
    bench.say("no call");
    expect(bench.told).toEqual(["closed 1002"]);
    expect(bench.signals).toEqual([]);
  });
});
