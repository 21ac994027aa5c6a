/**
 * Looks for a reason why a file cannot be executed: its permissions, its interpreter. A terminal starts its program
 * through `setsid`, whose own error message would only appear on the screen.
 */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { type User, withUserRights } from "../kernel/libc.ts";

const firstLineBytesMax = 256;

/** Undefined: no problem is known. */
export function executableProblem(
  file: string,
  user: User | undefined,
): { file: string; code: string } | undefined {
  return withUserRights(user, () => {
    if (!mayExecute(file, user)) return { file, code: "EACCES" };
    const interpreter = interpreterOf(file);
    if (interpreter === undefined) return undefined;
    try {
      statSync(interpreter);
      return undefined;
    } catch (error) {
      return { file: interpreter, code: (error as NodeJS.ErrnoException).code ?? "ENOENT" };
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
