/**
 * Owns following what changes below a folder, and the progress of a clone.
 * Does not own how a stream is read and opened again (live-stream.ts). A watch has no cursor: what a cut may have hidden
 * is told as missed.
 */
import type { GateOptions, SandboxApi } from "../../protocol/api.ts";
import { BerthError } from "../../protocol/error-codes.ts";
import type { FileChange } from "../../protocol/file.ts";
import type { Cloned, CloneInput, CloneProgress } from "../../protocol/git.ts";
import { isPassing } from "../terminal/sockets.ts";
import { errorOf, follow, type Message, messagesOf, type StreamOptions } from "./stream.ts";

export type FileEvent =
  /** From here on nothing is missed. */
  | { type: "ready" }
  | { type: "changes"; changes: FileChange[] }
  /** Some changes are not told: list anew. */
  | { type: "missed" }
  /** The last one: the folder itself has gone. */
  | { type: "gone" };

type Watch = Parameters<SandboxApi["watchFiles"]>[0];

export type WatchOptions = StreamOptions & NonNullable<Watch>;
export type CloneOptions = GateOptions & {
  signal?: AbortSignal;
  progress?: (told: CloneProgress) => void;
};

type Watched = {
  watchFiles(query: Watch & { signal: AbortSignal }): Promise<AsyncIterable<Uint8Array>>;
};

export function followFiles(
  sandbox: Watched,
  { signal, reconnectMs, onConnection, ...query }: WatchOptions = {},
): AsyncGenerator<FileEvent, void, undefined> {
  let wasReady = false;
  const followed = {
    open: (over: AbortSignal) => sandbox.watchFiles({ ...query, signal: over }),
    read({ event, data }: Message): FileEvent | undefined {
      if (event === "change") return { type: "changes", ...(data as { changes: FileChange[] }) };
      if (event === "overflow") return { type: "missed" };
      if (event === "gone") return { type: "gone" };
      if (event !== "ready") return undefined;
      const isFirst = !wasReady;
      wasReady = true;
      return { type: isFirst ? "ready" : "missed" };
    },
    isOver: ({ event }: Message) => event === "gone",
    outOfReach: () => new BerthError("unavailable", "The watched folder cannot be reached."),
  };
  const given = { signal, reconnectMs, onConnection };
  return follow(followed, defined(given));
}

/** `StreamOptions` as they were given. */
function defined(given: { [Name in keyof StreamOptions]: StreamOptions[Name] | undefined }) {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as StreamOptions;
}

type Clones = Pick<SandboxApi, "cloneRepository">;

/** It is not begun again when its connection breaks: a clone ends with its caller. */
export async function clone(
  sandbox: Clones,
  call: CloneInput,
  { progress, ...options }: CloneOptions = {},
): Promise<Cloned> {
  const bytes = await sandbox.cloneRepository(call, options);
  let failure: BerthError | undefined;
  try {
    for await (const message of messagesOf(bytes)) {
      if (message === "alive") continue;
      if (message.event === "done") return message.data as Cloned;
      if (message.event === "progress") progress?.(message.data as CloneProgress);
      if (message.event !== "error") continue;
      failure = errorOf(message);
      break;
    }
  } catch (thrown) {
    options.signal?.throwIfAborted();
    // What a broken stream says of itself is not what has become of the clone.
    if (!isPassing(thrown)) throw thrown;
  }
  if (failure !== undefined) throw failure;
  throw new BerthError("operation_interrupted", "The clone broke off before its end.", {
    hint: "It ends with its caller and leaves nothing: clone again.",
    facts: { admitted: true },
  });
}
