/**
 * Owns the readers of large files while the runtime sends to them: as many as may transfer at once, each with the
 * time that its bytes may take. The runtime itself tells neither when one is done nor how far it is: a file that no
 * descriptor of this process leads to has been sent.
 */
import { readdirSync } from "node:fs";
import { limits } from "../../../src/protocol/limits.ts";
import { type Status, statusAt } from "../kernel/openat.ts";
import type { PartCall } from "../server/module.ts";
import type { Transfers } from "./transfers.ts";

/** Smaller ones lie in the buffers of the connection, whoever reads them. */
const largeBytes = 8 * 1024 * 1024;
/** For the rest of a small one; the longest that the runtime waits. */
const silenceSeconds = 240;
const lookEveryMs = 30_000;

type Reading = { call: PartCall; file: string; until: number; end: () => void };

export class Readers {
  readonly #transfers: Transfers;
  readonly #reading = new Set<Reading>();
  #timer: Timer | undefined;

  constructor(transfers: Transfers) {
    this.#transfers = transfers;
    transfers.beforeRefusing = () => this.#look();
  }

  /** Once the file is open; throws where too many transfer already. */
  begin(call: PartCall, status: Status, bytes: number): void {
    if (bytes <= largeBytes) {
      call.server.timeout(call.request, silenceSeconds);
      return;
    }
    const end = this.#transfers.beginSending();
    call.server.timeout(call.request, 0);
    const allowedMs = limits.fileReaderMs + (bytes / limits.fileReaderBytesMin) * 1000;
    const until = performance.now() + allowedMs;
    const reading = { call, file: nameOf(status), until, end };
    this.#reading.add(reading);
    call.request.signal.addEventListener("abort", () => this.#end(reading), { once: true });
    this.#timer ??= setInterval(() => this.#look(), lookEveryMs);
  }

  /** Before the file of one more is open, which would count for one that is being sent. */
  settle(): void {
    this.#transfers.settle();
  }

  #look(): void {
    const open = openFiles();
    // Of several who read one file nobody knows which is done: the newest are taken for those who are not.
    for (const reading of [...this.#reading].reverse()) {
      const left = open.get(reading.file) ?? 0;
      open.set(reading.file, left - 1);
      const isLate = performance.now() > reading.until;
      if (isLate) reading.call.server.timeout(reading.call.request, 1);
      if (isLate || left <= 0) this.#end(reading);
    }
  }

  #end(reading: Reading): void {
    this.#reading.delete(reading);
    reading.end();
    if (this.#reading.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** How many descriptors lead to each. */
function openFiles(): Map<string, number> {
  const files = new Map<string, number>();
  for (const fd of readdirSync("/proc/self/fd")) {
    try {
      const name = nameOf(statusAt(Number(fd)));
      files.set(name, (files.get(name) ?? 0) + 1);
    } catch {
      // The one that the list was read by.
    }
  }
  return files;
}

function nameOf({ device, inode }: Status): string {
  return `${device}:${inode}`;
}
