/**
 * Decides what a call starts: which file, with which arguments, in which folder and environment; and the exit code and
 * message of a shell if no such file can run. The kernel decides in the end what can be executed.
 */
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Env } from "../../../src/protocol/fields/env.ts";
import type { ProcessCall } from "../../../src/protocol/process.ts";
import { type User, withUserRights } from "../kernel/libc.ts";
import type { Launch } from "../supervision/process-tree.ts";
import { buildEnvironment, resolveCwd, type SandboxEnv } from "./sandbox-env.ts";
import { asUser } from "./users.ts";

export type ResolvedProgram = Pick<Launch, "program" | "argv" | "cwd" | "env" | "user" | "groups">;

export type StartFailure = { exitCode: 126 | 127; line: string };

const shell = "/bin/sh";
const anyExecute = 0o111;

/** Looks at files with the command's own rights. Throws bad_cwd; returns a failure if no such program can run. */
export function resolveProgram(
  given: SandboxEnv,
  call: Pick<ProcessCall, "command" | "argv" | "cwd" | "env" | "user">,
): ResolvedProgram | StartFailure {
  const sandboxEnv = asUser(given, call.user);
  const cwd = resolveCwd(sandboxEnv, call.cwd);
  const env = buildEnvironment(sandboxEnv, call.env);
  const argv = toArgv(call);
  const { user, groups, lookup } = sandboxEnv;
  const program =
    call.argv === undefined ? shell : findProgram(argv[0] ?? "", { cwd, env, lookup });
  return typeof program === "string" ? { program, argv, cwd, env, user, groups } : program;
}

function toArgv(call: Pick<ProcessCall, "command" | "argv">): string[] {
  if (call.argv !== undefined) return call.argv;
  const command = call.command ?? "";
  // A shell would take a command that begins with - or + for an option of its own.
  return ["sh", "-c", /^[-+]/.test(command) ? ` ${command}` : command];
}

/** Searches like execvp: names with a slash below `cwd`, others along PATH. */
export function findProgram(
  name: string,
  { cwd, env, lookup }: { cwd: string; env: Env; lookup: User | undefined },
): string | StartFailure {
  const candidates = name.includes("/")
    ? [resolve(cwd, name)]
    : (env.PATH ?? "").split(":").map((folder) => join(resolve(cwd, folder), name));
  const checked = withUserRights(lookup, () =>
    candidates.map((file) => ({ file, code: checkExecutable(file) })),
  );
  const found = checked.find(({ code }) => code === undefined);
  if (found !== undefined) return found.file;
  return startFailure(name, checked.some(({ code }) => code === "EACCES") ? "EACCES" : "ENOENT");
}

export function startFailure(name: string, code: string | undefined): StartFailure {
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return { exitCode: 127, line: `${name}: not found\n` };
    case "EACCES":
      return { exitCode: 126, line: `${name}: permission denied\n` };
    case "E2BIG":
      return { exitCode: 126, line: `${name}: argument list too long\n` };
    case "ENOEXEC":
      return { exitCode: 126, line: `${name}: not in a format that can be executed\n` };
    default:
      return { exitCode: 126, line: `${name}: cannot be executed (${code ?? "unknown"})\n` };
  }
}

/** Returns the error code; undefined: the file can be executed. */
function checkExecutable(file: string): string | undefined {
  try {
    const stat = statSync(file);
    return stat.isFile() && (stat.mode & anyExecute) !== 0 ? undefined : "EACCES";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "ENOENT";
  }
}
