/** Translates errors of the kernel for the caller of a file route: an error code, the path, the next step. */
import { BerthError, type ErrorCode } from "../../../src/protocol/error-codes.ts";

type FileError = [code: ErrorCode, text: string, hint?: string];

const fileErrors: Record<string, FileError> = {
  ENOENT: ["file_not_found", "does not exist"],
  ENOTDIR: ["not_a_folder", "is not a folder, or leads through something that is not"],
  EISDIR: ["not_a_file", "is a folder"],
  ENXIO: ["not_a_file", "is a device or socket"],
  ENODEV: ["not_a_file", "is a device"],
  EACCES: ["file_forbidden", "is not permitted for commands of the sandbox"],
  EPERM: ["file_forbidden", "is not permitted for commands of the sandbox"],
  EROFS: ["file_forbidden", "is on a read-only file system"],
  ETXTBSY: ["file_forbidden", "is a running program"],
  ELOOP: ["file_forbidden", "leads through too many links, or through a magic link of /proc"],
  ENAMETOOLONG: ["bad_request", "is too long: a name has at most 255 bytes, a path 4,095"],
  EINVAL: [
    "bad_request",
    "cannot be used like this; a folder, for example, cannot be moved into itself",
  ],
  EXDEV: ["bad_request", "is on another file system", "Use the command `mv`, which copies it."],
  EBUSY: ["bad_request", "is in use by the system, for example as a mount point"],
  EEXIST: ["file_exists", "exists already"],
  ENOTEMPTY: ["not_empty", "is not empty", "Use recursive=true."],
  ENOSPC: ["disk_full", "does not fit: the disk is full"],
  EDQUOT: ["disk_full", "does not fit: the disk is full"],
  EFBIG: ["too_large", "is larger than the file system allows"],
  EMFILE: ["unavailable", "cannot be opened: too many files are"],
  ENFILE: ["unavailable", "cannot be opened: too many files are"],
  ENOSYS: ["unsupported", "cannot be opened safely: the kernel has no openat2 (Linux 5.6)"],
};

/** `shown` is the path as the caller knows it. */
export function toFileError(thrown: unknown, shown: string, field = "path"): unknown {
  if (thrown instanceof BerthError || !(thrown instanceof Error) || !("code" in thrown)) {
    return thrown;
  }
  const fileError = fileErrors[String(thrown.code)];
  if (fileError === undefined) return thrown;
  const [code, text, hint] = fileError;
  return new BerthError(code, `${shown} ${text}.`, {
    ...(hint === undefined ? {} : { hint }),
    facts: { field, path: shown },
  });
}

/** Turns errors of the kernel in `work` into errors that name the path. */
export function mapFileErrors<T>(shown: string, work: () => T, field = "path"): T {
  try {
    return work();
  } catch (error) {
    throw toFileError(error, shown, field);
  }
}

export function notAFile(shown: string, what: string): BerthError {
  const facts = { field: "path", path: shown };
  return new BerthError("not_a_file", `${shown} is ${what}, not a file.`, { facts });
}

export function notAFolder(shown: string): BerthError {
  const facts = { field: "path", path: shown };
  return new BerthError("not_a_folder", `${shown} is not a folder.`, { facts });
}
