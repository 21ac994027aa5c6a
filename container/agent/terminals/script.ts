/**
 * Owns what keeps a found file from being executed, as far as that can be seen: its rights, its interpreter.
 * Does not own finding it (../program.ts). A terminal's program is started by another one, whose word about a
 * failure would only be seen on the screen.
 */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { type User, withRightsOf } from "../kernel/libc.ts";

const firstLineBytesMax = 256;

/** Undefined: nothing is seen. */
export function scriptProblem(
  file: string,
  user: User | undefined,
): { file: string; code: string } | undefined {
  return withRightsOf(user, () => {
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
    // It may be executed without being read.
    return undefined;
  }
}
