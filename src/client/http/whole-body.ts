/**
 * Owns reading an answer that comes whole, within a bound of bytes and of silence: content, or what it fails with.
 * Does not own the words of a failure (failure.ts).
 */
import type { BerthError } from "../../protocol/error-codes.ts";
import type { Silence } from "./attempt-timeout.ts";
import { failureOf, foreignAnswer, isErrorBody, type Sent } from "./failure.ts";

/** What ends the wait for an answer, or for more of it. */
export type Ears = { silence: Silence; signal: AbortSignal };

/** The largest answer is a command's 16 MiB, each byte of it escaped. */
const textBytesMax = 128 * 1024 * 1024;

const noContent = 204;

/** An answer that is a failure after all: what took long is a 200 with what failed inside. */
export class Told extends Error {
  readonly body: unknown;
  readonly status: number;

  constructor(body: unknown, status: number) {
    super("the answer is a failure");
    this.body = body;
    this.status = status;
  }

  failure(about: Sent): BerthError {
    if (isErrorBody(this.body)) return failureOf(this.body, this.status);
    return foreignAnswer(about, this.status);
  }
}

export async function wholeAnswer<Content>(response: Response, ears: Ears): Promise<Content> {
  const text = await readText(response, ears);
  if (response.status === noContent) return undefined as Content;
  const body = parsed(text);
  if (body === undefined) {
    // Over a binding, or a relay that hides it, an answer that breaks off seems to end.
    if (response.headers.has("berth-request-id")) throw new Error("the answer broke off");
    throw new Told(body, response.status);
  }
  // What only tells of a failure, as an aborted commit does, is content.
  if (isErrorBody(body) && typeof body.requestId === "string") throw new Told(body, 500);
  return body as Content;
}

export async function refusal(response: Response, ears: Ears, about: Sent): Promise<BerthError> {
  const body = parsed(await readText(response, ears));
  return new Told(body, response.status).failure(about);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readText({ body }: Response, { silence, signal }: Ears): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let bytes = 0; ; ) {
      const { done, value } = await unlessAborted(reader.read(), signal);
      if (done) return text + decoder.decode();
      silence.heard();
      bytes += value.byteLength;
      if (bytes > textBytesMax) throw new Error("the answer is longer than any of Berth's");
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** A given fetch may not look at the signal. */
export function unlessAborted<Value>(wait: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    // Also where nobody waits any more: a rejection that nobody hears ends a program.
    wait.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
