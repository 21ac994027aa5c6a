/**
 * Copies a file or a folder from this machine into a sandbox.
 */
import { createReadStream, statSync } from "node:fs";
import { basename, posix, resolve } from "node:path";
import type { SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/errors.ts";
import type { FileView } from "../../protocol/file.ts";
import { Failure } from "../failure.ts";
import { packFolder } from "./tar.ts";

type CopyResult = { bytes: number; to: string };

export async function upload(
  sandbox: SandboxHandle,
  from: string,
  to: string,
  cwd: string,
  { lease, signal }: { lease: string; signal: AbortSignal },
  report: (bytes: number) => void,
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
  const progress = ({ bytes }: { bytes: number }) => report(bytes);
  if (stat.isFile()) {
    const content = { stream: createReadStream(local), bytes: stat.size };
    const mode = (stat.mode & 0o777).toString(8).padStart(3, "0");
    await sandbox.writeFile(target, content, { mkdirs: true, mode, lease, progress });
    return { bytes: stat.size, to: `:${target}` };
  }
  if (!stat.isDirectory()) {
    throw new Failure(`${from} is neither a file nor a folder.`, { code: "not_a_file" });
  }
  await using archive = await packFolder(local, signal);
  const unpacked = await sandbox.uploadArchive(
    target,
    { stream: createReadStream(archive.path), bytes: archive.bytes },
    { lease, progress },
  );
  return { bytes: unpacked.bytes, to: `:${target}` };
}

/** Undefined if it does not exist. */
async function statIfExists(sandbox: SandboxHandle, path: string): Promise<FileView | undefined> {
  try {
    return await sandbox.stat(path);
  } catch (thrown) {
    if (asBerthError(thrown)?.code === "file_not_found") return undefined;
    throw thrown;
  }
}
