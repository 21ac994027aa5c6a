/**
 * Owns copying a file or a folder from a sandbox to this machine: whole or not at all.
 *
 * A sandbox may hold anything, so nothing of it is unpacked where something of ours is: an archive goes into a folder
 * made for it, which then takes its place.
 */
import { createWriteStream, existsSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { basename, dirname, join, posix, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { SandboxHandle } from "../../client/index.ts";
import { Failure } from "../failure.ts";
import { unpack } from "./tar.ts";

type Copied = { bytes: number; to: string };

export async function download(
  sandbox: SandboxHandle,
  from: string,
  to: string,
  cwd: string,
  tell: (bytes: number) => void,
): Promise<Copied> {
  const there = await sandbox.stat(from);
  const target = targetOf(resolve(cwd, to), to, there.path);
  if (!existsSync(dirname(target))) {
    throw new Failure(`there is no folder ${dirname(target)}`, {
      hint: "Make it first, or name another place.",
      code: "file_not_found",
    });
  }
  const beside = mkdtempSync(join(dirname(target), ".berth-copy-"));
  const progress = ({ bytes }: { bytes: number }) => tell(bytes);
  try {
    const made = join(beside, "content");
    let bytes: number;
    if (there.kind === "folder") {
      if (existsSync(target)) {
        throw new Failure(`${target} is there already`, {
          hint: "Remove it first, or name another place.",
          code: "file_exists",
        });
      }
      bytes = await unpack(await sandbox.downloadArchive(from, { progress }), made);
    } else if (there.kind === "file") {
      const content = await sandbox.readFile(from, { progress });
      await pipeline(Readable.from(content.body), createWriteStream(made, { flags: "wx" }));
      await chmod(made, Number.parseInt(there.mode, 8) & 0o777);
      bytes = content.size;
    } else {
      throw new Failure(`${from} is no file and no folder`, {
        ...(there.target === undefined ? {} : { hint: `It is a link to ${there.target}.` }),
        code: "not_a_file",
      });
    }
    renameSync(made, target);
    return { bytes, to: target };
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}

function targetOf(local: string, written: string, remote: string): string {
  const isFolder = statSync(local, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isFolder) return local;
  const name = posix.basename(remote);
  if (name === "" || name === "." || name === "..") {
    throw new Failure(`${written} is a folder, and the place in the sandbox has no name`, {
      hint: "Name the new folder: `berth cp : copy`.",
      code: "bad_usage",
    });
  }
  return join(local, basename(name));
}
