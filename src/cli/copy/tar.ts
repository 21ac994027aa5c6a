/**
 * Owns packing and unpacking folders by this machine's tar.
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Failure } from "../failure.ts";

const saidMax = 4000;

export type Packed = AsyncDisposable & { path: string; bytes: number };

/** In a file of its own: an upload says before its first byte how long it is. */
export async function packed(folder: string, signal: AbortSignal): Promise<Packed> {
  const place = mkdtempSync(join(tmpdir(), "berth-pack-"));
  const path = join(place, "folder.tar");
  const remove = async () => rmSync(place, { recursive: true, force: true });
  try {
    const { ended } = tar(["-cf", path, "-C", folder, "."], "ignore", signal);
    await ended;
    return { path, bytes: statSync(path).size, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Into a folder that is made for it; how many bytes the archive had. */
export async function unpack(archive: AsyncIterable<Uint8Array>, into: string): Promise<number> {
  mkdirSync(into);
  const { child, ended } = tar(["-xf", "-", "-C", into, "--no-same-owner"], "pipe");
  let bytes = 0;
  const counted = async function* () {
    for await (const piece of archive) {
      bytes += piece.byteLength;
      yield piece;
    }
  };
  const { stdin } = child;
  if (stdin === null) throw new Failure("tar takes no input");
  const fed = pipeline(Readable.from(counted()), stdin);
  const [sent, unpacked] = await Promise.allSettled([fed, ended]);
  // What tar says is why it took no more.
  if (unpacked.status === "rejected") throw unpacked.reason;
  if (sent.status === "rejected") throw sent.reason;
  return bytes;
}

function tar(args: string[], stdin: "ignore" | "pipe", signal?: AbortSignal) {
  const child = spawn("tar", args, {
    env: { ...process.env, LC_ALL: "C", TAR_OPTIONS: "" },
    stdio: [stdin, "ignore", "pipe"],
    ...(signal === undefined ? {} : { signal }),
  });
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said = `${said}${text}`.slice(-saidMax);
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", (error) => {
      reject(new Failure(`cannot run tar: ${error.message}`, { hint: "Install tar." }));
    });
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Failure(`tar failed: ${said.trim().split("\n").at(-1) ?? `with ${code}`}`));
    });
  });
  return { child, ended };
}
