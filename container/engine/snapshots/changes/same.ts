/**
 * Owns whether what has the same name in two saved trees is the same: kind, mode, owner, attributes, target, content.
 * Does not own the walk (walk.ts).
 *
 * Two files of one size are read only where their times leave a doubt. Saved trees keep the time of the last write to the
 * nanosecond, and the kernel gives each write another one, with two exceptions: a write within one tick of its clock after
 * the copy, which is told by how long before the copy the file was written; and a time that a program has set, as unpacking
 * does, which is told by its whole seconds. What is missed is a time set back to the nanosecond under other content.
 */
import { closeSync, readSync } from "node:fs";
import { attributesAt, openBelow, type Status, targetAt } from "./kernel.ts";

/** One name in two open folders. */
export type Twins = { older: number; newer: number; name: string };

/** Longer than a tick of any kernel's clock. */
const tickNsMax = 100_000_000n;
const secondNs = 1_000_000_000n;

const [olderBytes, newerBytes] = [Buffer.alloc(256 * 1024), Buffer.alloc(256 * 1024)];

export class Sameness {
  #readBytesLeft: number;

  constructor(readBytesMax: number) {
    this.#readBytesLeft = readBytesMax;
  }

  isSame(twins: Twins, older: Status, newer: Status): boolean {
    const { name } = twins;
    if (!older.isLike(newer)) return false;
    if (newer.isLink && targetAt(twins.older, name) !== targetAt(twins.newer, name)) return false;
    if (newer.isFile && !older.isAsLongAs(newer)) return false;
    if (attributesAt(twins.older, name) !== attributesAt(twins.newer, name)) return false;
    return !newer.isFile || newer.size === 0 || this.#isSameContent(twins, older, newer);
  }

  #isSameContent(twins: Twins, older: Status, newer: Status): boolean {
    const isOfOneTime = older.isOfTheTimeOf(newer);
    if (isOfOneTime && isTelling(older)) return true;
    if (this.#readBytesLeft <= 0) return isOfOneTime;
    const one = openBelow(twins.older, twins.name, "file");
    const other = openBelow(twins.newer, twins.name, "file");
    try {
      for (;;) {
        const [bytes, more] = [fill(one, olderBytes), fill(other, newerBytes)];
        this.#readBytesLeft -= bytes + more;
        if (bytes !== more || olderBytes.compare(newerBytes, 0, bytes, 0, bytes) !== 0)
          return false;
        if (bytes < olderBytes.length) return true;
        if (this.#readBytesLeft <= 0) return isOfOneTime;
      }
    } finally {
      closeSync(one);
      closeSync(other);
    }
  }
}

/** A later write would have another time. */
function isTelling({ modifiedNs, changedNs }: Status): boolean {
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
