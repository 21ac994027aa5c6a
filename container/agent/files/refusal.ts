/**
 * Owns what a failure of the kernel means to the caller of a file route: a code of the table, the path, the next step.
 * Does not own faults of ours: those stay as they are.
 */
import { BerthError, type ErrorCode } from "../../../src/protocol/error-codes.ts";

type Meaning = [code: ErrorCode, words: string, hint?: string];

const notThere = "is not there";
const meanings: Record<string, Meaning> = {
  ENOENT: ["file_not_found", notThere],
  ENOTDIR: ["not_a_folder", "is no folder, or leads through something that is none"],
  EISDIR: ["not_a_file", "is a folder"],
  ENXIO: ["not_a_file", "is a device or socket"],
  ENODEV: ["not_a_file", "is a device"],
  EACCES: ["file_forbidden", "may not be touched so by commands of the sandbox either"],
  EPERM: ["file_forbidden", "may not be touched so by commands of the sandbox either"],
  EROFS: ["file_forbidden", "stands where nothing can be written"],
  ETXTBSY: ["file_forbidden", "is a program that runs"],
  ELOOP: ["file_forbidden", "leads through too many links, or through one of /proc that jumps"],
  ENAMETOOLONG: ["bad_request", "is too long: a name has at most 255 bytes, a path 4,095"],
  EINVAL: ["bad_request", "cannot be used so, for instance a folder moved into itself"],
  EXDEV: ["bad_request", "stands on another file system", "move it by a command: mv copies it"],
  EBUSY: ["bad_request", "is in use by the system, for instance as a mount point"],
  EEXIST: ["file_exists", "is there already"],
  ENOTEMPTY: ["not_empty", "is not empty", "say recursive=true"],
  ENOSPC: ["disk_full", "finds no room left"],
  EDQUOT: ["disk_full", "finds no room left"],
  EFBIG: ["too_large", "is larger than the file system takes"],
  EMFILE: ["unavailable", "cannot be opened: too many files are"],
  ENFILE: ["unavailable", "cannot be opened: too many files are"],
  ENOSYS: ["unsupported", "cannot be opened safely: the kernel has no openat2 (Linux 5.6)"],
};

/** `shown` is the path as the caller knows it. */
export function refusalOf(thrown: unknown, shown: string, field = "path"): unknown {
  if (thrown instanceof BerthError || !(thrown instanceof Error) || !("code" in thrown)) {
    return thrown;
  }
  const meaning = meanings[String(thrown.code)];
  if (meaning === undefined) return thrown;
  const [code, words, hint] = meaning;
  return new BerthError(code, `${shown} ${words}`, {
    ...(hint === undefined ? {} : { hint }),
    facts: { field, path: shown },
  });
}

/** Whatever the kernel refuses in `work` becomes an answer that names the path. */
export function refusing<T>(shown: string, work: () => T, field = "path"): T {
  try {
    return work();
  } catch (error) {
    throw refusalOf(error, shown, field);
  }
}

export function notAFile(shown: string, what: string): BerthError {
  return new BerthError("not_a_file", `${shown} is ${what}, not a file`, {
    facts: { field: "path", path: shown },
  });
}

export function isCode(thrown: unknown, ...codes: string[]): boolean {
  return thrown instanceof Error && "code" in thrown && codes.includes(String(thrown.code));
}

export function notAFolder(shown: string): BerthError {
  return new BerthError("not_a_folder", `${shown} is no folder`, {
    facts: { field: "path", path: shown },
  });
}
