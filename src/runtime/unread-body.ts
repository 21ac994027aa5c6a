/**
 * Owns reading out the body of a call that was refused: a sender who writes until the end, and only then reads, would
 * else find a broken connection in place of the refusal. Bounded in bytes and time; nothing is kept.
 */
import { limits } from "../protocol/limits.ts";

export async function readOut(request: Request): Promise<void> {
  // It waits for a word before it sends anything, and this answer is one.
  if (request.headers.has("expect")) return;
  if (request.body === null || request.bodyUsed || request.body.locked) return;
  const reader = request.body.getReader();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), limits.bodyReadMs);
  });
  try {
    for (let bytes = 0; bytes < limits.refusedBodyBytesMax; ) {
      const read = await Promise.race([reader.read(), late]);
      if (read === undefined || read.done) return;
      bytes += read.value.length;
    }
  } catch {
    // Its sender has gone.
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => undefined);
  }
}
