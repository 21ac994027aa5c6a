/** Follows the changes below a folder in the form of E2B's daemon. */
import { posix } from "node:path";
import type { FileChange, FileView } from "../../protocol/file.ts";
import { ApiRefusal } from "../api-calls.ts";
import { EventReader } from "../server-events.ts";
import { ConnectError } from "./connect-framing.ts";
import type { DaemonCall } from "./daemon.ts";
import { entryOf, pathOf } from "./filesystem.ts";
import { type Item, keepaliveMs, streamMessages, timeoutMs } from "./streams.ts";

const types: Record<FileChange["what"], string> = {
  made: "EVENT_TYPE_CREATE",
  written: "EVENT_TYPE_WRITE",
  removed: "EVENT_TYPE_REMOVE",
};

export async function watchFolder(call: DaemonCall): Promise<ReadableStream<Uint8Array>> {
  const { calls, sandbox, message, headers } = call;
  const path = pathOf(message, "path");
  const query = new URLSearchParams({ path, recursive: message.recursive === true ? "1" : "0" });
  const url = `/v1/sandboxes/${sandbox}/files/watch?${query}`;
  const response = await calls.send(url, { headers: { accept: "text/event-stream" } });
  if (response.body === null) throw new ConnectError("internal", "the watch has no body");
  const source = new WatchSource(call, path, new EventReader(response.body));
  const limit = timeoutMs(headers);
  if (limit !== undefined) source.endAfter(limit);
  return streamMessages(source);
}

/** A file is made together with its content: clients expect to hear of both. */
function withContent(change: FileChange): FileChange[] {
  const isNewFile = change.what === "made" && change.kind === "file";
  return isNewFile ? [change, { ...change, what: "written" }] : [change];
}

class WatchSource {
  readonly #call: DaemonCall;
  readonly #folder: string;
  readonly #events: EventReader;
  readonly #late = Promise.withResolvers<"late">();
  readonly #items: Item[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sentAt = Date.now();

  constructor(call: DaemonCall, folder: string, events: EventReader) {
    this.#call = call;
    this.#folder = folder;
    this.#events = events;
  }

  endAfter(ms: number): void {
    this.#timer = setTimeout(() => this.#late.resolve("late"), ms);
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#events.cancel();
  }

  async next(): Promise<Item> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) {
        this.#sentAt = Date.now();
        return item;
      }
      const read = await Promise.race([this.#events.next(), this.#late.promise]);
      if (read === "late") return this.#end("deadline_exceeded", "the time of the call is over");
      if (read === undefined) throw new Error("the watch was cut");
      switch (read.name) {
        case "ready":
          this.#items.push({ message: { start: {} } });
          break;
        case "change":
          await this.#take((JSON.parse(read.data) as { changes: FileChange[] }).changes);
          break;
        case "gone":
          return this.#end(undefined, "");
        case "overflow":
          return this.#end("resource_exhausted", "too many changes at once: list the folder again");
        case "error":
          throw new Error(`the watch was cut: ${read.data}`);
        case "":
          if (Date.now() - this.#sentAt >= keepaliveMs(this.#call.headers)) {
            this.#items.push({ message: { keepalive: {} } });
          }
      }
    }
  }

  #end(code: ConnectError["code"] | undefined, message: string): Item {
    this.cancel();
    return { end: code === undefined ? undefined : new ConnectError(code, message) };
  }

  async #take(changes: FileChange[]): Promise<void> {
    for (const change of changes.flatMap(withContent)) {
      const { path, what } = change;
      const absolute = posix.resolve(this.#folder, path);
      const entry = what === "removed" ? undefined : await this.#entry(absolute);
      const filesystem = {
        name: posix.relative(this.#folder, absolute),
        type: types[what],
        ...(entry === undefined ? {} : { entry }),
      };
      this.#items.push({ message: { filesystem } });
    }
  }

  async #entry(path: string): Promise<object | undefined> {
    if (this.#call.message.includeEntry !== true) return undefined;
    const query = new URLSearchParams({ path });
    const url = `/v1/sandboxes/${this.#call.sandbox}/files/stat?${query}`;
    try {
      return await entryOf(this.#call, await this.#call.calls.json<FileView>("GET", url));
    } catch (thrown) {
      if (thrown instanceof ApiRefusal) return undefined;
      throw thrown;
    }
  }
}
