/**
 * Wraps a sandbox of a real Berth in which a test runs things: calls to it, byte streams from it, and the resources that
 * its agent holds.
 */
import { spawn } from "node:child_process";
import { createHash, type Hash } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { expect } from "vitest";
import type { Process, ProcessInput } from "../../../src/protocol/process.ts";
import { Viewer, type ViewerOptions } from "../../agent/terminals/terminal-socket.ts";
import { nameOf, privateBytes, treeOf } from "../../bench/processes.ts";
import { until } from "../../until.ts";
import type { Answer, RunningServer } from "../server.ts";

export type Held = { descriptors: number; ptys: number; processes: number; memoryMiB: number };

/** As many and as large as the rules promise; else as much as shows the same in half a minute. */
export const isFull = process.env.RUNS_FULL === "1";

const stillMiB = 1;
/** Connections between servers that nobody uses are closed after some seconds. */
const stillMs = 6_000;

export class Runs {
  readonly id: string;
  readonly agent: number;
  readonly #server: RunningServer;

  static async in(server: RunningServer): Promise<Runs> {
    return new Runs(server, await server.create());
  }

  private constructor(server: RunningServer, id: string) {
    this.#server = server;
    this.id = id;
    this.agent = server.agentOf(id).pid;
  }

  call(method: string, path: string, body?: unknown): Promise<Answer> {
    return this.#server.call(method, `/v1/sandboxes/${this.id}/${path}`, body);
  }

  async start(call: ProcessInput): Promise<Process> {
    const { status, body } = await this.call("POST", "processes", call);
    expect(status, JSON.stringify(body)).toBe(201);
    return body as unknown as Process;
  }

  async exited(id: string): Promise<Process> {
    const path = `processes/${id}/wait?for=exit&timeoutMs=50000`;
    const { body } = await this.call("GET", path);
    expect(body).toMatchObject({ met: true });
    return body.process as Process;
  }

  /** The raw bytes of one stream as they come, from an offset on. */
  bytes(id: string, offset: number, signal: AbortSignal): Promise<Response> {
    const path = `processes/${id}/logs?follow=1&stream=stdout&offset=${offset}`;
    return fetch(`${this.#server.url}/v1/sandboxes/${this.id}/${path}`, {
      headers: {
        authorization: `Bearer ${this.#server.key}`,
        accept: "application/octet-stream",
      },
      signal,
    });
  }

  /** All that its agent has, itself included. */
  held(): Held {
    return {
      descriptors: readdirSync(`/proc/${this.agent}/fd`).length,
      ptys: this.ptys(),
      processes: treeOf(this.agent).length,
      memoryMiB: privateMiB(this.agent),
    };
  }

  /** The names of what runs below its agent. */
  running(): string[] {
    return treeOf(this.agent).slice(1).map(nameOf);
  }

  /** By the masters that the agent holds; two descriptors of one are one. */
  ptys(): number {
    const numbers = new Set<string>();
    for (const fd of readdirSync(`/proc/${this.agent}/fd`)) {
      try {
        if (!/ptmx$/.test(readlinkSync(`/proc/${this.agent}/fd/${fd}`))) continue;
        const info = readFileSync(`/proc/${this.agent}/fdinfo/${fd}`, "utf8");
        numbers.add(/tty-index:\s*(\d+)/.exec(info)?.[1] ?? fd);
      } catch {
        // It was closed meanwhile.
      }
    }
    return numbers.size;
  }

  /** PTY devices inside the sandbox, whichever process holds them. */
  devices(): string[] {
    const names = readdirSync(`/proc/${this.agent}/root/dev/pts`);
    return names.filter((name) => /^\d+$/.test(name));
  }

  /** Nothing runs, and for some seconds nothing was opened, closed or given back. */
  async still(limitMs: number): Promise<Held> {
    let last = this.held();
    let changedAt = performance.now();
    await until(
      "nothing changes any more",
      () => {
        const now = this.held();
        const isSame =
          now.descriptors === last.descriptors &&
          now.processes === 1 &&
          Math.abs(now.memoryMiB - last.memoryMiB) < stillMiB;
        if (isSame) return performance.now() - changedAt > stillMs;
        changedAt = performance.now();
        last = now;
        return false;
      },
      limitMs,
    ).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify({ last, running: this.running() })}`);
    });
    return last;
  }

  /** Waits until nothing is left of what came after `before`. Less is no leak. */
  async back(before: Held, memoryMiBMax: number, limitMs: number): Promise<Held> {
    const isBack = (now: Held) =>
      now.descriptors <= before.descriptors &&
      now.ptys <= before.ptys &&
      now.processes <= before.processes &&
      now.memoryMiB <= memoryMiBMax;
    await until("all is as it was", () => isBack(this.held()), limitMs).catch((error) => {
      const facts = { before, now: this.held(), running: this.running() };
      throw new Error(`${error.message}: ${JSON.stringify(facts)}`);
    });
    return this.held();
  }
}

/** What is its own alone. */
export function privateMiB(pid: number): number {
  return Math.round((privateBytes(pid) / 1024 / 1024) * 10) / 10;
}

/** Views a terminal of a sandbox of this server: `path` is `<sandbox>/terminals/<terminal>`. */
export function openViewer(
  { url, key }: RunningServer,
  path: string,
  options: ViewerOptions = {},
): Promise<Viewer> {
  const address = `${url.replace("http", "ws")}/v1/sandboxes/${path}`;
  return Viewer.openAt(address, { authorization: `Bearer ${key}` }, options);
}

export type Cut = { bytes: number; ms: number };

/** To the end; or cut off, after so many bytes or so long; or not let in, while earlier readers count as there. */
export async function readUntilCut(
  ask: (signal: AbortSignal) => Promise<Response>,
  { bytes, ms }: Cut,
  take: (bytes: Uint8Array) => void,
): Promise<"whole" | "cut" | "refused"> {
  const cut = new AbortController();
  const timer = setTimeout(() => cut.abort(), ms);
  let read = 0;
  try {
    const answer = await ask(cut.signal);
    if (answer.status === 429) {
      await answer.text();
      return "refused";
    }
    expect(answer.status).toBe(200);
    for await (const some of answer.body ?? []) {
      take(some);
      read += some.length;
      if (read > bytes) cut.abort();
    }
    return "whole";
  } catch (error) {
    if (!cut.signal.aborted) throw error;
    return "cut";
  } finally {
    clearTimeout(timer);
  }
}

/** The digest of what a local shell prints. */
export async function digestOf(command: string): Promise<string> {
  const hash: Hash = createHash("sha256");
  const child = spawn("sh", ["-c", command], { stdio: ["ignore", "pipe", "ignore"] });
  for await (const bytes of child.stdout) hash.update(bytes);
  return hash.digest("hex");
}
