/**
 * Keeps room on the disk for what frees room. Below a floor nothing starts and nothing is saved. Where almost nothing is left, the
 * sandboxes that write are stopped and a reserve is given up piece by piece, so that objects can still record a destroy.
 */
import {
  closeSync,
  ftruncateSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from "node:fs";
import { BerthError } from "../../src/protocol/errors.ts";
import type { EngineDisk } from "../../src/protocol/internal/engine.ts";
import { log, messageOf } from "./log.ts";

const MiB = 1024 * 1024;
const checkMs = 250;
const reserveBytesMax = 32 * MiB;
const pieceCount = 4;
const floorBytesMin = 16 * MiB;
const floorBytesMax = 1024 * MiB;
/** Less than one file of an object may need. */
const criticalBytesMax = 4 * MiB;

export type DiskWriters = {
  /** Stops the sandboxes that have written since the last call, and returns how many. */
  stopWriting(): number;
  continueWriting(): void;
};

export type DiskOptions = {
  folder: string;
  /** Left out: a hundredth of the disk, from 16 MiB to 1 GiB. */
  floorBytes?: number | undefined;
  writers: DiskWriters;
};

export class DiskGuard {
  readonly #folder: string;
  readonly #reserve: string;
  readonly #floorBytes: number;
  readonly #reserveBytes: number;
  readonly #writers: DiskWriters;
  #timer: ReturnType<typeof setInterval> | undefined;
  #hasStopped = false;
  #isLogged = false;

  constructor({ folder, floorBytes, writers }: DiskOptions) {
    this.#folder = folder;
    this.#reserve = `${folder}/reserve`;
    this.#writers = writers;
    const { blocks, bsize } = statfsSync(folder);
    const size = blocks * bsize;
    this.#floorBytes =
      floorBytes ?? Math.min(floorBytesMax, Math.max(floorBytesMin, Math.floor(size / 100)));
    this.#reserveBytes = Math.min(reserveBytesMax, Math.floor(size / 16));
  }

  begin(): void {
    this.check();
    this.#timer = setInterval(() => this.check(), checkMs);
    this.#timer.unref();
  }

  end(): void {
    clearInterval(this.#timer);
  }

  read(): EngineDisk {
    const freeBytes = this.#freeBytes();
    return { freeBytes, floorBytes: this.#floorBytes, isFull: freeBytes < this.#floorBytes };
  }

  /** For what writes to the disk; whatever frees room must not ask. */
  refuseWhenFull(): void {
    const { freeBytes, floorBytes, isFull } = this.read();
    if (!isFull) return;
    throw new BerthError("disk_full", "The server's disk is full: nothing was started or saved.", {
      hint: "Destroy sandboxes, remove checkpoints or files, or free disk space below the data folder.",
      facts: { freeBytes, floorBytes },
    });
  }

  /** Public for tests, which do not wait for the timer. */
  check(): void {
    const freeBytes = this.#freeBytes();
    if (freeBytes < this.#floorBytes) this.#report(freeBytes);
    if (freeBytes < Math.min(criticalBytesMax, this.#floorBytes / 4)) this.#giveUpPiece();
    if (freeBytes < this.#floorBytes) return;
    if (this.#hasStopped) this.#writers.continueWriting();
    this.#hasStopped = false;
    if (this.#isLogged) log("disk_has_room", { freeBytes });
    this.#isLogged = false;
    this.#fillReserve(freeBytes);
  }

  #freeBytes(): number {
    const { bavail, bfree, bsize } = statfsSync(this.#folder);
    return (process.getuid?.() === 0 ? bfree : bavail) * bsize;
  }

  #report(freeBytes: number): void {
    if (!this.#isLogged) log("disk_full", { freeBytes, floorBytes: this.#floorBytes });
    this.#isLogged = true;
  }

  /** Stops the writers first: they would take the piece at once. */
  #giveUpPiece(): void {
    const stopped = this.#writers.stopWriting();
    this.#hasStopped ||= stopped > 0;
    const held = this.#heldBytes();
    if (held === 0) return;
    const left = Math.max(0, held - Math.ceil(this.#reserveBytes / pieceCount));
    const fd = openSync(this.#reserve, "r+");
    ftruncateSync(fd, left);
    closeSync(fd);
    log("reserve_given_up", { left, stoppedSandboxes: stopped });
  }

  /** Only where the floor still holds with it. */
  #fillReserve(freeBytes: number): void {
    const held = this.#heldBytes();
    const missing = this.#reserveBytes - held;
    if (missing <= 0 || freeBytes - missing < this.#floorBytes) return;
    try {
      const fd = openSync(this.#reserve, "a", 0o600);
      try {
        const piece = Buffer.alloc(MiB);
        for (let left = missing; left > 0; left -= piece.length)
          writeSync(fd, piece, 0, Math.min(left, piece.length));
      } finally {
        closeSync(fd);
      }
    } catch (error) {
      rmSync(this.#reserve, { force: true });
      log("reserve_not_made", { why: messageOf(error) });
    }
  }

  #heldBytes(): number {
    return statSync(this.#reserve, { throwIfNoEntry: false })?.size ?? 0;
  }
}
