/**
 * Finds the file that a program's name means, and the exit code and message of a shell if no such file can run. The
 * kernel decides in the end what can be executed.
 */
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Env } from "../../../src/protocol/fields/env.ts";
import { type User, withUserRights } from "../kernel/libc.ts";

export type StartFailure = { exitCode: 126 | 127; line: string };

const anyExecute = 0o111;

/** Searches like execvp: names with a slash below `cwd`, others along PATH. */
export function findProgram(
  name: string,
  { cwd, env, user }: { cwd: string; env: Env; user: User | undefined },
): string | StartFailure {
  const candidates = name.includes("/")
    ? [resolve(cwd, name)]
    : (env.PATH ?? "").split(":").map((folder) => join(resolve(cwd, folder), name));
  const checked = withUserRights(user, () =>
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
