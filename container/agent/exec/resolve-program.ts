/** Decides what a call starts: which file, with which arguments, in which folder and environment. */

import type { ProcessCall } from "../../../src/protocol/process.ts";
import type { Launch } from "../supervision/process-tree.ts";
import { findProgram, type StartFailure } from "./program.ts";
import { buildEnvironment, resolveCwd, type SandboxEnv } from "./sandbox-env.ts";

export type ResolvedProgram = Pick<Launch, "program" | "argv" | "cwd" | "env" | "user">;

const shell = "/bin/sh";

/** Looks at files with the command's own rights. Throws bad_cwd; returns a failure if no such program can run. */
export function resolveProgram(
  sandboxEnv: SandboxEnv,
  call: Pick<ProcessCall, "command" | "argv" | "cwd" | "env">,
): ResolvedProgram | StartFailure {
  const cwd = resolveCwd(sandboxEnv, call.cwd);
  const env = buildEnvironment(sandboxEnv, call.env);
  const argv = toArgv(call);
  const { user } = sandboxEnv;
  const program = call.argv === undefined ? shell : findProgram(argv[0] ?? "", { cwd, env, user });
  return typeof program === "string" ? { program, argv, cwd, env, user } : program;
}

function toArgv(call: Pick<ProcessCall, "command" | "argv">): string[] {
  if (call.argv !== undefined) return call.argv;
  const command = call.command ?? "";
  // A shell would take a command that begins with - or + for an option of its own.
  return ["sh", "-c", /^[-+]/.test(command) ? ` ${command}` : command];
}
