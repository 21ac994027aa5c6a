/**
 * Drains the body of a refused call, so that a client that writes all of it before it reads gets the error instead of a
 * broken connection. Bounded in bytes and time; nothing is stored.
 */
import { limits } from "../../../src/protocol/limits.ts";

export async function drainBody(request: Request): Promise<void> {
  if (request.body === null || request.bodyUsed || request.body.locked) return;
  const reader = request.body.getReader();
  const cancel = () => reader.cancel().catch(() => {});
  const timer = setTimeout(cancel, limits.bodyReadMs);
  try {
    for (let bytes = 0; bytes < limits.refusedBodyBytesMax; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.length;
    }
  } catch {
    // The sender disconnected.
  } finally {
    clearTimeout(timer);
    cancel();
  }
}
