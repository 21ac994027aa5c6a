/**
 * Bounds how many large files the runtime sends at once, and how long each may take. The runtime reports neither progress
 * nor end: a file that no descriptor of this process refers to has been sent.
 */
import { readdirSync } from "node:fs";
import { limits } from "../../../src/protocol/limits.ts";
import { type Status, statusAt } from "../kernel/openat.ts";
import type { ModuleRequest } from "../server/module.ts";
import type { Transfers } from "./transfers.ts";

/** Smaller files fit into the buffers of the connection, however slow the reader is. */
const largeBytes = 8 * 1024 * 1024;
/** For the rest of a small file. The runtime allows no longer time-out. */
const smallTimeoutSeconds = 240;
const checkEveryMs = 30_000;

type Sending = { call: ModuleRequest; file: string; until: number; end: () => void };

export class FileSenders {
  readonly #transfers: Transfers;
  readonly #sending = new Set<Sending>();
  #timer: Timer | undefined;

  constructor(transfers: Transfers) {
    this.#transfers = transfers;
    transfers.beforeRefusing = () => this.#check();
  }

  /** Call it once the file is open. Throws when too many transfers run already. */
  begin(call: ModuleRequest, status: Status, bytes: number): void {
    if (bytes <= largeBytes) {
      call.server.timeout(call.request, smallTimeoutSeconds);
      return;
    }
    const end = this.#transfers.beginSending();
    call.server.timeout(call.request, 0);
    const allowedMs = limits.fileReaderMs + (bytes / limits.fileReaderBytesMin) * 1000;
    const until = performance.now() + allowedMs;
    const sending = { call, file: nameOf(status), until, end };
    this.#sending.add(sending);
    call.request.signal.addEventListener("abort", () => this.#end(sending), { once: true });
    this.#timer ??= setInterval(() => this.#check(), checkEveryMs);
  }

  /** Call it before another file is opened, because an open file counts as one that is being sent. */
  settle(): void {
    this.#transfers.settle();
  }

  #check(): void {
    const open = openFiles();
    // With several readers of one file, the newest ones are taken for those that are not done.
    for (const sending of [...this.#sending].reverse()) {
      const left = open.get(sending.file) ?? 0;
      open.set(sending.file, left - 1);
      const isLate = performance.now() > sending.until;
      if (isLate) sending.call.server.timeout(sending.call.request, 1);
      if (isLate || left <= 0) this.#end(sending);
    }
  }

  #end(sending: Sending): void {
    this.#sending.delete(sending);
    sending.end();
    if (this.#sending.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** Counts the descriptors of each file. */
function openFiles(): Map<string, number> {
  const files = new Map<string, number>();
  for (const fd of readdirSync("/proc/self/fd")) {
    try {
      const name = nameOf(statusAt(Number(fd)));
      files.set(name, (files.get(name) ?? 0) + 1);
    } catch {
      // The descriptor that listed the folder.
    }
  }
  return files;
}

function nameOf({ device, inode }: Status): string {
  return `${device}:${inode}`;
}
