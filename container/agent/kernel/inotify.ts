/**
 * Watches folders with inotify. A user has few instances, so one serves all watchers of this process; the kernel gives a
 * folder that several watch the same number, and each event once.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { closeSync } from "node:fs";
import { createMemoryFile } from "../../engine/jail/descriptors.ts";
import { KernelError } from "./openat.ts";
import { PipeReader } from "./pipe.ts";

const { i32, u32, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  inotify_init1: { args: [i32], returns: i32 },
  inotify_add_watch: { args: [i32, pointer, u32], returns: i32 },
  inotify_rm_watch: { args: [i32, i32], returns: i32 },
}).symbols;

export const inotifyEvents = {
  modified: 0x2,
  closedAfterWriting: 0x8,
  movedFrom: 0x40,
  movedTo: 0x80,
  made: 0x100,
  removed: 0x200,
  selfRemoved: 0x400,
  selfMoved: 0x800,
  overflow: 0x4000,
  isFolder: 0x40000000,
} as const;

const { overflow: _overflow, isFolder: _isFolder, ...wanted } = inotifyEvents;
const [folderOnly, notUnlinked] = [0x1000000, 0x4000000];
const mask = Object.values(wanted).reduce((sum, flag) => sum | flag, folderOnly | notUnlinked);
/** IN_IGNORED is the last event of a watch. */
const [watchRemoved, attributesChanged] = [0x8000, 0x4];

export type InotifyEvent = { watch: number; mask: number; name: string };

/** One descriptor with its watches. It is open while somebody watches. */
class Instance {
  readonly #fd: number;
  readonly #reader: PipeReader;
  /** A file that nobody else can watch. See `mark`. */
  readonly #markFile: number;
  readonly #watchers = new Set<FolderWatcher>();
  readonly #byWatch = new Map<number, Set<FolderWatcher>>();
  /** Resolves when the descriptor is closed. */
  readonly ended: Promise<void>;

  constructor() {
    const [nonBlocking, closeOnExec] = [0o4000, 0o2000000];
    this.#fd = libc.inotify_init1(nonBlocking | closeOnExec);
    if (this.#fd < 0) throw new KernelError("inotify_init1", "EMFILE");
    this.#markFile = createMemoryFile("");
    this.#reader = new PipeReader(this.#fd, (bytes) => this.#dispatch(parse(bytes)));
    this.ended = this.#reader.ended
      .catch((error) => console.error("inotify ended:", error))
      .finally(() => closeSync(this.#markFile));
  }

  join(watcher: FolderWatcher): void {
    this.#watchers.add(watcher);
  }

  leave(watcher: FolderWatcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    if (current === this) current = undefined;
    this.#reader.stop();
  }

  /** Queues an event of a new number: all events before it happened before this call. Undefined: no watches are left. */
  mark(): number | undefined {
    const watch = this.#addWatch(this.#markFile, attributesChanged);
    if (watch !== undefined) libc.inotify_rm_watch(this.#fd, watch);
    return watch;
  }

  add(watcher: FolderWatcher, folder: number): number | undefined {
    const watch = this.#addWatch(folder, mask);
    if (watch === undefined) return undefined;
    const sharing = this.#byWatch.get(watch) ?? new Set();
    this.#byWatch.set(watch, sharing.add(watcher));
    return watch;
  }

  remove(watcher: FolderWatcher, watch: number): void {
    const sharing = this.#byWatch.get(watch);
    if (sharing?.delete(watcher) !== true || sharing.size > 0) return;
    this.#byWatch.delete(watch);
    libc.inotify_rm_watch(this.#fd, watch);
  }

  #addWatch(file: number, events: number): number | undefined {
    const path = Buffer.from(`/proc/self/fd/${file}\0`);
    const watch = libc.inotify_add_watch(this.#fd, ptr(path), events >>> 0);
    return watch < 0 ? undefined : watch;
  }

  #dispatch(events: InotifyEvent[]): void {
    for (const event of events) {
      const isForAll = (event.mask & (inotifyEvents.overflow | watchRemoved)) !== 0;
      const receivers = isForAll ? this.#watchers : this.#byWatch.get(event.watch);
      for (const watcher of receivers ?? []) watcher.receive(event);
      if (event.mask & watchRemoved) this.#byWatch.delete(event.watch);
    }
    for (const watcher of this.#watchers) watcher.deliver();
  }
}

let current: Instance | undefined;

/** Receives the events of the folders that it has added, in their order, and every overflow. */
export class FolderWatcher {
  readonly #instance: Instance;
  readonly #take: (events: InotifyEvent[]) => void;
  readonly #watches = new Set<number>();
  readonly #closed = Promise.withResolvers<void>();
  #received: InotifyEvent[] = [];
  /** Events before this mark are not received. */
  #mark: number | undefined;

  /** Throws EMFILE if the user has no inotify instance left. */
  constructor(take: (events: InotifyEvent[]) => void) {
    current ??= new Instance();
    this.#instance = current;
    this.#take = take;
    this.#instance.join(this);
  }

  /** Resolves when it is closed, or nothing more is reported. */
  get ended(): Promise<void> {
    return Promise.race([this.#closed.promise, this.#instance.ended]);
  }

  /**
   * Skips events that happened before this call: a folder that another watcher has added too may have some in the
   * queue, such as having been moved to where this one found it.
   */
  skipEarlierEvents(): void {
    this.#mark = this.#instance.mark();
  }

  /** Watches an open folder; undefined: there are no watches left, or the folder was removed or cannot be read. */
  add(folder: number): number | undefined {
    const watch = this.#instance.add(this, folder);
    if (watch !== undefined) this.#watches.add(watch);
    return watch;
  }

  remove(watch: number): void {
    this.#watches.delete(watch);
    this.#instance.remove(this, watch);
  }

  receive(event: InotifyEvent): void {
    if (event.mask & inotifyEvents.overflow) {
      this.#received.push(event);
      // The mark may have been lost too.
      if (this.#mark !== undefined) this.skipEarlierEvents();
    } else if (event.watch === this.#mark) this.#mark = undefined;
    else if (this.#mark === undefined) this.#received.push(event);
  }

  deliver(): void {
    if (this.#received.length === 0) return;
    const events = this.#received;
    this.#received = [];
    this.#take(events);
  }

  close(): void {
    for (const watch of this.#watches) this.#instance.remove(this, watch);
    this.#watches.clear();
    this.#instance.leave(this);
    this.#closed.resolve();
  }
}

/** struct inotify_event: watch, mask, cookie, length of the name; the name is filled up with NUL. */
function parse({ buffer, byteOffset, length: size }: Uint8Array): InotifyEvent[] {
  const bytes = Buffer.from(buffer, byteOffset, size);
  const all: InotifyEvent[] = [];
  for (let offset = 0; offset + 16 <= bytes.length; ) {
    const length = bytes.readUInt32LE(offset + 12);
    const name = bytes.toString("latin1", offset + 16, offset + 16 + length).replace(/\0+$/, "");
    all.push({ watch: bytes.readInt32LE(offset), mask: bytes.readUInt32LE(offset + 4), name });
    offset += 16 + length;
  }
  return all;
}
