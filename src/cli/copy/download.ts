/**
 * Copies a file or a folder from a sandbox to this machine, completely or not at all.
 * A sandbox may hold anything, so an archive is unpacked into a new folder, which then moves into place.
 */
import { createWriteStream, existsSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { basename, dirname, join, posix, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { SandboxHandle } from "../../client/index.ts";
import { Failure } from "../failure.ts";
import { unpack } from "./tar.ts";

type CopyResult = { bytes: number; to: string };

export async function download(
  sandbox: SandboxHandle,
  from: string,
  to: string,
  cwd: string,
  report: (bytes: number) => void,
): Promise<CopyResult> {
  const remote = await sandbox.stat(from);
  const target = resolveTarget(resolve(cwd, to), to, remote.path);
  if (!existsSync(dirname(target))) {
    throw new Failure(`${dirname(target)} does not exist.`, {
      hint: "Create the folder first, or choose another target.",
      code: "file_not_found",
    });
  }
  const temporary = mkdtempSync(join(dirname(target), ".berth-copy-"));
  const progress = ({ bytes }: { bytes: number }) => report(bytes);
  try {
    const partial = join(temporary, "content");
    let bytes: number;
    if (remote.kind === "folder") {
      if (existsSync(target)) {
        throw new Failure(`${target} already exists.`, {
          hint: "Remove it first, or choose another target.",
          code: "file_exists",
        });
      }
      bytes = await unpack(await sandbox.downloadArchive(from, { progress }), partial);
    } else if (remote.kind === "file") {
      const content = await sandbox.readFile(from, { progress });
      await pipeline(Readable.from(content.body), createWriteStream(partial, { flags: "wx" }));
      await chmod(partial, Number.parseInt(remote.mode, 8) & 0o777);
      bytes = content.size;
    } else {
      throw new Failure(`${from} is neither a file nor a folder.`, {
        ...(remote.target === undefined ? {} : { hint: `It is a link to ${remote.target}.` }),
        code: "not_a_file",
      });
    }
    renameSync(partial, target);
    return { bytes, to: target };
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function resolveTarget(local: string, given: string, remote: string): string {
  const isFolder = statSync(local, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isFolder) return local;
  const name = posix.basename(remote);
  if (name === "" || name === "." || name === "..") {
    throw new Failure(`${given} is a folder, and the path in the sandbox has no name`, {
      hint: "Give the new folder a name: `berth cp : copy`.",
      code: "bad_usage",
    });
  }
  return join(local, basename(name));
}
