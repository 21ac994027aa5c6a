/** Watches folders with inotify: one descriptor, its watches, and their events as they arrive. */
import { dlopen, FFIType, ptr } from "bun:ffi";
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

export type InotifyEvent = { watch: number; mask: number; name: string };

export class Inotify {
  readonly #fd: number;
  readonly #reader: PipeReader;
  /** Resolves when the descriptor is closed. */
  readonly ended: Promise<void>;

  constructor(take: (news: InotifyEvent[]) => void) {
    const [nonBlocking, closeOnExec] = [0o4000, 0o2000000];
    this.#fd = libc.inotify_init1(nonBlocking | closeOnExec);
    if (this.#fd < 0) throw new KernelError("inotify_init1", "EMFILE");
    this.#reader = new PipeReader(this.#fd, (bytes) => take(parse(bytes)));
    this.ended = this.#reader.ended.catch((error) => console.error("inotify ended:", error));
  }

  /** Watches an open folder; undefined: there are no watches left, or the folder was removed or cannot be read. */
  add(folder: number): number | undefined {
    const path = Buffer.from(`/proc/self/fd/${folder}\0`);
    const watch = libc.inotify_add_watch(this.#fd, ptr(path), mask >>> 0);
    return watch < 0 ? undefined : watch;
  }

  remove(watch: number): void {
    libc.inotify_rm_watch(this.#fd, watch);
  }

  close(): Promise<void> {
    this.#reader.stop();
    return this.ended;
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
