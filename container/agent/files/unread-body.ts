/**
 * Owns reading out the body of a refused call that nobody has begun to read: who writes all of it before he reads
 * finds the refusal then, and no broken connection. Bounded in bytes and time; nothing is kept.
 */
import { limits } from "../../../src/protocol/limits.ts";

export async function readOut(request: Request): Promise<void> {
  if (request.body === null || request.bodyUsed || request.body.locked) return;
  const reader = request.body.getReader();
  const leave = () => reader.cancel().catch(() => {});
  const late = setTimeout(leave, limits.bodyReadMs);
  try {
    for (let bytes = 0; bytes < limits.refusedBodyBytesMax; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.length;
    }
  } catch {
    // Its sender has gone.
  } finally {
    clearTimeout(late);
    leave();
  }
}
