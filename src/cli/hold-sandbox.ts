/**
 * Owns holding the lease of a found sandbox, and telling who waits that it does.
 */
import { hostname, userInfo } from "node:os";
import type { HeldLease } from "../client/lease.ts";
import { limits } from "../protocol/limits.ts";
import type { Context } from "./context.ts";
import type { Found } from "./find-sandbox.ts";

/** Who: `name@host`, and what for. */
export function holderName(what: string): string {
  return `${userInfo().username}@${hostname()}: ${what}`
    .replace(/\p{Cc}/gu, " ")
    .slice(0, limits.holderCharsMax);
}

export async function holdSandbox(
  context: Context,
  { id, sandbox }: Pick<Found, "id" | "sandbox">,
  what: string,
  signal?: AbortSignal,
): Promise<HeldLease> {
  return await sandbox.hold({
    holder: holderName(what),
    onQueued: (position) =>
      context.progress.tell(`waiting for the lease of ${id}: ${position} before`),
    ...(signal === undefined ? {} : { signal }),
  });
}
