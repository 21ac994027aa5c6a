/**
 * Finds the program that a terminal starts, its folder and its environment. A program that is known not to run is
 * refused before there is a terminal: `setsid`, which starts it, would report that only on the screen.
 */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import type { AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { findProgram, type StartFailure, startFailure } from "../exec/program.ts";
import { buildEnvironment, resolveCwd, type SandboxEnv } from "../exec/sandbox-env.ts";
import { asUser } from "../exec/users.ts";
import { type User, withUserRights } from "../kernel/libc.ts";
import { refuse } from "../server/fields.ts";
import type { Launch } from "../supervision/process-tree.ts";

/** Creates a session whose controlling terminal is this one, and becomes the program: the pid stays the same. */
const setsid = "/usr/bin/setsid";
const firstLineBytesMax = 256;

/** `shownArgv` leaves out `setsid`. */
export type TerminalProgram = Omit<Launch, "stdin" | "stdout" | "stderr"> & { shownArgv: string[] };

type Context = Pick<Launch, "cwd" | "env" | "user" | "groups"> & Pick<SandboxEnv, "lookup">;

/** Throws bad_cwd, or bad_request for a program that cannot run. */
export function resolveTerminalProgram(
  call: AgentTerminalCall,
  given: SandboxEnv,
): TerminalProgram {
  const sandboxEnv = asUser(given, call.user);
  const cwd = resolveCwd(sandboxEnv, call.cwd);
  const colours = { TERM: "xterm-256color", COLORTERM: "truecolor" };
  const env = buildEnvironment(sandboxEnv, { ...colours, ...sandboxEnv.env, ...call.env });
  const { user, groups, lookup } = sandboxEnv;
  const context = { cwd, env, user, groups, lookup };
  const shownArgv = call.argv ?? loginShell(context);
  const file = findProgram(shownArgv[0] ?? "", context);
  const failure = typeof file === "string" ? executionFailure(file, lookup) : file;
  if (failure !== undefined) {
    refuse(
      "argv",
      `names a program that cannot run: ${failure.line.trimEnd()}; no terminal was made`,
    );
  }
  return { program: setsid, argv: ["setsid", "-c", "--", ...shownArgv], ...context, shownArgv };
}

function loginShell(context: Context): string[] {
  return [typeof findProgram("bash", context) === "string" ? "bash" : "sh", "-l"];
}

/** Checks permissions and the interpreter. Undefined: no problem is known. */
function executionFailure(file: string, user: User | undefined): StartFailure | undefined {
  return withUserRights(user, () => {
    if (!mayExecute(file, user)) return startFailure(file, "EACCES");
    const interpreter = interpreterOf(file);
    if (interpreter === undefined) return undefined;
    try {
      statSync(interpreter);
      return undefined;
    } catch (error) {
      return startFailure(interpreter, (error as NodeJS.ErrnoException).code ?? "ENOENT");
    }
  });
}

function mayExecute(file: string, user: User | undefined): boolean {
  if (user === undefined) return true;
  const { mode, uid, gid } = statSync(file);
  const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0;
  return ((mode >> shift) & 1) === 1;
}

function interpreterOf(file: string): string | undefined {
  try {
    const fd = openSync(file, "r");
    const bytes = Buffer.alloc(firstLineBytesMax);
    const length = readSync(fd, bytes, 0, bytes.length, 0);
    closeSync(fd);
    return /^#![ \t]*([^\s]+)/.exec(bytes.toString("utf8", 0, length))?.[1];
  } catch {
    // Unreadable, but it may still be executable.
    return undefined;
  }
}
