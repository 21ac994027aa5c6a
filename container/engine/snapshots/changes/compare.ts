/**
 * Decides whether an entry is the same in two saved trees: kind, mode, owner, attributes, link target, content.
 *
 * Two files of the same size are only read if their times leave doubt. Saved trees keep the modification time to the
 * nanosecond, and every write sets a new one, with two exceptions. A write within one clock tick after the copy:
 * detected by comparing how long before the copy the file was written. A time that a program has set, as unpacking
 * does: detected by whole seconds. Undetected is only a time that is set back to the exact nanosecond under different
 * content.
 */
import { closeSync, readSync } from "node:fs";
import { type FileStatus, openBelow, readAttributes, readTarget } from "./kernel.ts";

/** The same name in two open folders. */
type EntryPair = { older: number; newer: number; name: string };

/** Longer than a tick of any kernel's clock. */
const tickNsMax = 100_000_000n;
const secondNs = 1_000_000_000n;

const [olderBytes, newerBytes] = [Buffer.alloc(256 * 1024), Buffer.alloc(256 * 1024)];

export class EntryComparer {
  #readBytesLeft: number;

  constructor(readBytesMax: number) {
    this.#readBytesLeft = readBytesMax;
  }

  isSame(entry: EntryPair, older: FileStatus, newer: FileStatus): boolean {
    const { name } = entry;
    if (!older.hasSameAttributes(newer)) return false;
    if (newer.isLink && readTarget(entry.older, name) !== readTarget(entry.newer, name))
      return false;
    if (newer.isFile && !older.hasSameSize(newer)) return false;
    if (readAttributes(entry.older, name) !== readAttributes(entry.newer, name)) return false;
    return !newer.isFile || newer.size === 0 || this.#isSameContent(entry, older, newer);
  }

  #isSameContent(entry: EntryPair, older: FileStatus, newer: FileStatus): boolean {
    const hasSameTime = older.hasSameModifiedTime(newer);
    if (hasSameTime && hasReliableTime(older)) return true;
    if (this.#readBytesLeft <= 0) return hasSameTime;
    const olderFile = openBelow(entry.older, entry.name, "file");
    const newerFile = openBelow(entry.newer, entry.name, "file");
    try {
      for (;;) {
        const [olderLength, newerLength] = [
          fill(olderFile, olderBytes),
          fill(newerFile, newerBytes),
        ];
        this.#readBytesLeft -= olderLength + newerLength;
        if (olderLength !== newerLength) return false;
        if (olderBytes.compare(newerBytes, 0, newerLength, 0, olderLength) !== 0) return false;
        if (olderLength < olderBytes.length) return true;
        if (this.#readBytesLeft <= 0) return hasSameTime;
      }
    } finally {
      closeSync(olderFile);
      closeSync(newerFile);
    }
  }
}

/** Whether any later write would have changed the modification time. */
function hasReliableTime({ modifiedNs, changedNs }: FileStatus): boolean {
  return modifiedNs % secondNs !== 0n && modifiedNs + tickNsMax < changedNs;
}

function fill(fd: number, bytes: Buffer): number {
  let filled = 0;
  while (filled < bytes.length) {
    const read = readSync(fd, bytes, filled, bytes.length - filled, null);
    if (read === 0) break;
    filled += read;
  }
  return filled;
}
