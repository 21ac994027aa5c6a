/**
 * Owns where relative paths of a call begin: in the folder that its session stands in, else in the workspace.
 * Does not own sessions; this is all that files know of them.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Place } from "../exec/sandbox-env.ts";

export interface Sessions {
  /** Undefined: there is no such session. */
  cwdOf(id: string): string | undefined;
}

export function baseOf(
  session: string | undefined,
  place: Place,
  sessions: Sessions | undefined,
): string {
  if (session === undefined) return place.workspace;
  const cwd = sessions?.cwdOf(session);
  if (cwd === undefined) {
    throw new BerthError("not_found", `there is no session ${session}`, {
      hint: "create it first, or give an absolute path",
      facts: { field: "session" },
    });
  }
  return cwd;
}

/** A part that can tell where its sessions stand. */
export function sessionsIn(part: object | undefined): Sessions | undefined {
  return part !== undefined && "cwdOf" in part ? (part as Sessions) : undefined;
}
