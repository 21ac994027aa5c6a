/**
 * Finds the program that a terminal starts, its folder and its environment. A program that is known not to run is
 * refused before there is a terminal.
 */
import type { AgentTerminalCall } from "../../../src/protocol/internal/agent.ts";
import { findProgram, startFailure } from "../exec/program.ts";
import { buildEnvironment, resolveCwd, type SandboxEnv } from "../exec/sandbox-env.ts";
import { refuse } from "../server/fields.ts";
import type { Launch } from "../supervision/process-tree.ts";
import { executableProblem } from "./executable.ts";

/** Creates a session whose controlling terminal is this one, and becomes the program: the pid stays the same. */
const setsid = "/usr/bin/setsid";

/** `shownArgv` leaves out `setsid`. */
export type TerminalProgram = Omit<Launch, "stdin" | "stdout" | "stderr"> & { shownArgv: string[] };

type Context = Pick<Launch, "cwd" | "env" | "user">;

/** Throws bad_cwd, or bad_request for a program that cannot run. */
export function resolveTerminalProgram(
  call: AgentTerminalCall,
  sandboxEnv: SandboxEnv,
): TerminalProgram {
  const cwd = resolveCwd(sandboxEnv, call.cwd);
  const colours = { TERM: "xterm-256color", COLORTERM: "truecolor" };
  const env = buildEnvironment(sandboxEnv, { ...colours, ...sandboxEnv.env, ...call.env });
  const { user } = sandboxEnv;
  const context = { cwd, env, user };
  const shownArgv = call.argv ?? loginShell(context);
  const file = findProgram(shownArgv[0] ?? "", context);
  if (typeof file !== "string") refuseProgram(file.line);
  const problem = executableProblem(file, user);
  if (problem !== undefined) refuseProgram(startFailure(problem.file, problem.code).line);
  return { program: setsid, argv: ["setsid", "-c", "--", ...shownArgv], ...context, shownArgv };
}

function loginShell(context: Context): string[] {
  return [typeof findProgram("bash", context) === "string" ? "bash" : "sh", "-l"];
}

function refuseProgram(line: string): never {
  refuse("argv", `names a program that cannot run: ${line.trimEnd()}; no terminal was made`);
}
