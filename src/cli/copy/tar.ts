/** Packs and unpacks folders with this machine's `tar`. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Failure } from "../failure.ts";

const stderrCharsMax = 4000;

type PackedFolder = AsyncDisposable & { path: string; bytes: number };

/** Packs into a file, because an upload declares its size before its first byte. */
export async function packFolder(folder: string, signal: AbortSignal): Promise<PackedFolder> {
  const folderPath = mkdtempSync(join(tmpdir(), "berth-pack-"));
  const path = join(folderPath, "folder.tar");
  const remove = async () => rmSync(folderPath, { recursive: true, force: true });
  try {
    const { ended } = spawnTar(["-cf", path, "-C", folder, "."], "ignore", signal);
    await ended;
    return { path, bytes: statSync(path).size, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Unpacks into a new folder. Returns the size of the archive. */
export async function unpack(archive: AsyncIterable<Uint8Array>, into: string): Promise<number> {
  mkdirSync(into);
  const { child, ended } = spawnTar(["-xf", "-", "-C", into, "--no-same-owner"], "pipe");
  let bytes = 0;
  const countBytes = async function* () {
    for await (const chunk of archive) {
      bytes += chunk.byteLength;
      yield chunk;
    }
  };
  const { stdin } = child;
  if (stdin === null) throw new Failure("`tar` takes no input.");
  const fed = pipeline(Readable.from(countBytes()), stdin);
  const [sent, unpacked] = await Promise.allSettled([fed, ended]);
  // If both failed, tar's error is the cause.
  if (unpacked.status === "rejected") throw unpacked.reason;
  if (sent.status === "rejected") throw sent.reason;
  return bytes;
}

function spawnTar(args: string[], stdin: "ignore" | "pipe", signal?: AbortSignal) {
  const child = spawn("tar", args, {
    env: { ...process.env, LC_ALL: "C", TAR_OPTIONS: "" },
    stdio: [stdin, "ignore", "pipe"],
    signal,
  });
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = `${stderr}${text}`.slice(-stderrCharsMax);
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", (error) => {
      reject(new Failure(`Cannot run \`tar\`: ${error.message}.`, { hint: "Install `tar`." }));
    });
    child.once("close", (code) => {
      const reason = stderr.trim().split("\n").at(-1) ?? `exit code ${code}`;
      if (code === 0) resolve();
      else reject(new Failure(`\`tar\` failed: ${reason}.`));
    });
  });
  return { child, ended };
}
