/**
 * Sends this command's standard input to a remote process, by offset, so that no byte is sent twice. A terminal is not
 * read: without `--tty` the remote command has an empty input.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/errors.ts";

export type StdinTarget = { sandbox: SandboxHandle; process: string; lease: string };

const chunkBytes = 1024 * 1024;
const retryDelayMs = 500;
/** Limits lost responses in a row. */
const failuresMax = 60;

/** Resolves when everything was sent, when the process no longer reads, or when `over` aborts. */
export async function feedStdin(
  input: NodeJS.ReadStream,
  target: StdinTarget,
  over: AbortSignal,
): Promise<void> {
  let offset = 0;
  if (input.isTTY !== true) {
    for await (const chunk of readChunks(input, over)) {
      const accepted = await write(target, chunk, { offset, eof: false }, over);
      if (accepted === undefined) return;
      offset = accepted;
    }
  }
  if (!over.aborted) await write(target, new Uint8Array(), { offset, eof: true }, over);
}

/** Sends what has already arrived together, because a write takes a round trip. */
async function* readChunks(
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
      for (let start = 0; start < all.length; start += chunkBytes) {
        yield all.subarray(start, start + chunkBytes);
      }
    }
  } catch (error) {
    // Destroyed above, because the command is over.
    if (!over.aborted) throw error;
  } finally {
    over.removeEventListener("abort", end);
  }
}

/** The offset after the write; undefined if the process takes no more. */
async function write(
  { sandbox, process, lease }: StdinTarget,
  bytes: Uint8Array,
  position: { offset: number; eof: boolean },
  over: AbortSignal,
): Promise<number | undefined> {
  let failures = 0;
  while (!over.aborted) {
    try {
      const options = { ...position, lease, signal: over };
      return (await sandbox.writeStdin(process, bytes, options)).offset;
    } catch (thrown) {
      if (over.aborted) return undefined;
      const code = asBerthError(thrown)?.code;
      if (code === "stdin_closed") return undefined;
      // The process is not reading now, or the response was lost. The server skips what it already has.
      const isTransient = code === "unavailable" || code === "operation_interrupted";
      failures = code === "unavailable" ? 0 : failures + 1;
      if (!isTransient || failures > failuresMax) throw thrown;
      await sleep(retryDelayMs);
    }
  }
  return undefined;
}
