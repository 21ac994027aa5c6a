/**
 * Follows the changes below a folder, and reads the progress of a clone. A watch has no cursor: after a reconnect it
 * reports that changes may have been missed. See stream.ts for reading and reconnecting.
 */
import type { GateOptions, SandboxApi } from "../../protocol/api.ts";
import { BerthError } from "../../protocol/error-codes.ts";
import type { Cloned, CloneInput, CloneProgress, FileChange } from "../../protocol/file.ts";
import { isTransient } from "../http/retry.ts";
import type { SandboxCalls } from "../verbs.ts";
import {
  connectionLost,
  follow,
  readServerEvents,
  type ServerEvent,
  type StreamOptions,
  toStreamError,
} from "./stream.ts";

/** What `files.watch` yields. */
export type FileEvent =
  /** The watch has begun: all later changes are reported. */
  | { type: "ready" }
  | { type: "changes"; changes: FileChange[] }
  /** Some changes were not reported: list the folder again. */
  | { type: "missed" }
  /** The last event: the folder itself was removed. */
  | { type: "gone" };

type Watch = Parameters<SandboxApi["watchFiles"]>[0];

/** Options of `files.watch`. */
export type WatchOptions = StreamOptions & NonNullable<Watch>;
/** Options of `git.clone`. */
export type CloneOptions = GateOptions & {
  /** Cancels the clone. */
  signal?: AbortSignal | undefined;
  /** Called as the clone proceeds. */
  progress?: ((progress: CloneProgress) => void) | undefined;
};

export function followFiles(
  sandbox: Pick<SandboxCalls, "watchFiles">,
  { signal, reconnectMs, onConnection, ...query }: WatchOptions = {},
): AsyncGenerator<FileEvent, void, undefined> {
  let wasReady = false;
  const stream = {
    open: (over: AbortSignal) => sandbox.watchFiles({ ...query, signal: over }),
    read({ event, data }: ServerEvent): FileEvent | undefined {
      if (event === "change") return { type: "changes", ...(data as { changes: FileChange[] }) };
      if (event === "overflow") return { type: "missed" };
      if (event === "gone") return { type: "gone" };
      if (event !== "ready") return undefined;
      const isFirst = !wasReady;
      wasReady = true;
      return { type: isFirst ? "ready" : "missed" };
    },
    isOver: ({ event }: ServerEvent) => event === "gone",
    lostError: () => connectionLost("unavailable", "the watched folder"),
  };
  return follow(stream, { signal, reconnectMs, onConnection });
}

/** A lost connection ends the clone on the server too, so it is not repeated. */
export async function clone(
  sandbox: Pick<SandboxCalls, "cloneRepository">,
  input: CloneInput,
  { progress, ...options }: CloneOptions = {},
): Promise<Cloned> {
  const bytes = await sandbox.cloneRepository(input, options);
  let failure: BerthError | undefined;
  try {
    for await (const message of readServerEvents(bytes)) {
      if (message === "alive") continue;
      if (message.event === "done") return message.data as Cloned;
      if (message.event === "progress") progress?.(message.data as CloneProgress);
      if (message.event === "error") {
        failure = toStreamError(message);
        break;
      }
    }
  } catch (thrown) {
    options.signal?.throwIfAborted();
    // A lost connection says nothing about the clone: the error below does.
    if (!isTransient(thrown)) throw thrown;
  }
  if (failure !== undefined) throw failure;
  const message = "The connection was lost before the clone had finished.";
  throw new BerthError("operation_interrupted", message, {
    hint: "The clone was cancelled and left nothing behind: clone again.",
    facts: { admitted: true },
  });
}
