/**
 * Owns reading an answer that comes whole, within a bound of bytes and of silence.
 */
import type { Silence } from "./silence.ts";

/** The largest answer is a command's 16 MiB, each byte of it escaped. */
const textBytesMax = 128 * 1024 * 1024;

export async function readText(
  { body }: Response,
  silence: Silence,
  signal: AbortSignal,
): Promise<string> {
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
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    wait.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
