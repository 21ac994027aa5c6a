/**
 * Finds the folder at which relative paths of a call begin: that of its session, else the workspace.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { SandboxEnv } from "../exec/sandbox-env.ts";

export interface Sessions {
  /** Undefined: there is no such session. */
  cwdOf(id: string): string | undefined;
}

export function baseOf(
  session: string | undefined,
  sandboxEnv: SandboxEnv,
  sessions: Sessions | undefined,
): string {
  if (session === undefined) return sandboxEnv.workspace;
  const cwd = sessions?.cwdOf(session);
  if (cwd === undefined) {
    throw new BerthError("not_found", `There is no session ${session}.`, {
      hint: "Create it first, or give an absolute path.",
      facts: { field: "session" },
    });
  }
  return cwd;
}

/** The sessions of a module that has them. */
export function sessionsIn(module: object | undefined): Sessions | undefined {
  return module !== undefined && "cwdOf" in module ? (module as Sessions) : undefined;
}
