/**
 * Owns which file a command's name means, and what a shell would say where there is none that runs.
 * Does not own the start itself: the kernel has the last word on what can be executed.
 */
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Env } from "../../../src/protocol/fields/env.ts";
import { type User, withRightsOf } from "../kernel/libc.ts";

export type Refusal = { exitCode: 126 | 127; line: string };

const anyExecute = 0o111;

/** As execvp would look: names with a slash below `cwd`, others along PATH. */
export function findProgram(
  name: string,
  { cwd, env, user }: { cwd: string; env: Env; user: User | undefined },
): string | Refusal {
  const candidates = name.includes("/")
    ? [resolve(cwd, name)]
    : (env.PATH ?? "").split(":").map((folder) => join(resolve(cwd, folder), name));
  const seen = withRightsOf(user, () => candidates.map((file) => ({ file, code: look(file) })));
  const found = seen.find(({ code }) => code === undefined);
  if (found !== undefined) return found.file;
  return refusal(name, seen.some(({ code }) => code === "EACCES") ? "EACCES" : "ENOENT");
}

export function refusal(name: string, code: string | undefined): Refusal {
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

function look(file: string): string | undefined {
  try {
    const stat = statSync(file);
    return stat.isFile() && (stat.mode & anyExecute) !== 0 ? undefined : "EACCES";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "ENOENT";
  }
}
