/**
 * Owns the way of this command's standard input to a remote process: by offset, so that no byte goes twice.
 * A terminal is not read: without `--tty` the remote command finds its input empty.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/errors.ts";

type Target = { sandbox: SandboxHandle; process: string; lease: string };

const pieceBytes = 1024 * 1024;
const triesAgainMs = 500;
/** Of writes whose answer was lost, one after the other. */
const failuresMax = 60;

/** Ends when all was sent, when nobody reads it any more, or when `over` is aborted. */
export async function feed(
  input: NodeJS.ReadStream,
  target: Target,
  over: AbortSignal,
): Promise<void> {
  let offset = 0;
  if (input.isTTY !== true) {
    for await (const piece of pieces(input, over)) {
      const taken = await write(target, piece, { offset, eof: false }, over);
      if (taken === undefined) return;
      offset = taken;
    }
  }
  if (!over.aborted) await write(target, new Uint8Array(), { offset, eof: true }, over);
}

/** What is there already travels together: a write is a round trip. */
async function* pieces(
  input: NodeJS.ReadStream,
  over: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const end = () => input.destroy();
  over.addEventListener("abort", end);
  if (over.aborted) end();
  try {
    for await (const chunk of input) {
      const rest = input.readableLength > 0 ? (input.read() as Buffer | null) : null;
      const all = rest === null ? chunk : Buffer.concat([chunk, rest]);
      for (let at = 0; at < all.length; at += pieceBytes) yield all.subarray(at, at + pieceBytes);
    }
  } catch (error) {
    // We ended it ourselves, because the command is over.
    if (!over.aborted) throw error;
  } finally {
    over.removeEventListener("abort", end);
  }
}

/** How much was taken in all; nothing where no more will be. */
async function write(
  { sandbox, process, lease }: Target,
  bytes: Uint8Array,
  where: { offset: number; eof: boolean },
  over: AbortSignal,
): Promise<number | undefined> {
  let failures = 0;
  while (!over.aborted) {
    try {
      const taken = await sandbox.writeStdin(process, bytes, { ...where, lease, signal: over });
      return taken.offset;
    } catch (thrown) {
      if (over.aborted) return undefined;
      const code = asBerthError(thrown)?.code;
      if (code === "stdin_closed") return undefined;
      // It does not read for now, or the answer was lost: what was taken is skipped when it comes again.
      const mayPass = code === "unavailable" || code === "operation_interrupted";
      failures = code === "unavailable" ? 0 : failures + 1;
      if (!mayPass || failures > failuresMax) throw thrown;
      await pause(triesAgainMs);
    }
  }
  return undefined;
}
