/** Copies a file or a folder between this machine and a sandbox. */
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { chmod } from "node:fs/promises";
import { basename, dirname, join, posix, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/error-codes.ts";
import type { FileView } from "../../protocol/file.ts";
import { Failure } from "../failure.ts";
import { packFolder, unpack } from "./tar.ts";

export type CopyResult = { bytes: number; to: string };
type Progress = (done: { bytes: number }) => void;

/**
 * Copies to this machine, completely or not at all. A sandbox may hold anything, so an archive is unpacked into a new
 * folder, which then moves into place.
 */
export async function download(
  sandbox: SandboxHandle,
  from: string,
  to: string,
  cwd: string,
  progress: Progress,
): Promise<CopyResult> {
  const remote = await sandbox.files.stat(from);
  const target = resolveTarget(resolve(cwd, to), to, remote.path);
  if (!existsSync(dirname(target))) {
    throw new Failure(`${dirname(target)} does not exist.`, {
      hint: "Create the folder first, or choose another target.",
      code: "file_not_found",
    });
  }
  const temporary = mkdtempSync(join(dirname(target), ".berth-copy-"));
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
      bytes = await unpack(await sandbox.files.downloadArchive(from, { progress }), partial);
    } else if (remote.kind === "file") {
      const content = await sandbox.files.stream(from, { progress });
      await pipeline(Readable.from(content.body), createWriteStream(partial, { flags: "wx" }));
      await chmod(partial, Number.parseInt(remote.mode, 8) & 0o777);
      bytes = content.size;
    } else {
      throw new Failure(`${from} is neither a file nor a folder.`, {
        hint: remote.target === undefined ? undefined : `It is a link to ${remote.target}.`,
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

export async function upload(
  sandbox: SandboxHandle,
  from: string,
  to: string,
  cwd: string,
  { lease, signal }: { lease: string; signal: AbortSignal },
  progress: Progress,
): Promise<CopyResult> {
  const local = resolve(cwd, from);
  const stat = statSync(local, { throwIfNoEntry: false });
  if (stat === undefined) {
    throw new Failure(`${from} does not exist on this machine.`, {
      hint: `A path in the sandbox begins with a colon: \`:${from}\`.`,
      code: "file_not_found",
    });
  }
  const remote = await statIfExists(sandbox, to);
  const isInto = to.endsWith("/") || remote?.kind === "folder";
  const target = isInto ? posix.join(to, basename(local)) : to;
  if (stat.isFile()) {
    const content = { stream: createReadStream(local), bytes: stat.size };
    const mode = (stat.mode & 0o777).toString(8).padStart(3, "0");
    await sandbox.files.write(target, content, { mkdirs: true, mode, lease, progress });
    return { bytes: stat.size, to: `:${target}` };
  }
  if (!stat.isDirectory()) {
    throw new Failure(`${from} is neither a file nor a folder.`, { code: "not_a_file" });
  }
  await using archive = await packFolder(local, signal);
  const content = { stream: createReadStream(archive.path), bytes: archive.bytes };
  const { bytes } = await sandbox.files.uploadArchive(target, content, { lease, progress });
  return { bytes, to: `:${target}` };
}

async function statIfExists(sandbox: SandboxHandle, path: string): Promise<FileView | undefined> {
  try {
    return await sandbox.files.stat(path);
  } catch (thrown) {
    if (asBerthError(thrown)?.code === "file_not_found") return undefined;
    throw thrown;
  }
}
