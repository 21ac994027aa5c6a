/**
 * Fakes the output of a terminal for the renderer, and starts real render workers, for tests without an agent.
 */
import { spawn } from "node:child_process";
import type {
  RenderWorkerPipes,
  StartRenderWorker,
} from "../../../container/agent/terminals/screen/render-client.ts";
import type { ScreenSource } from "../../../container/agent/terminals/screen-renderer.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { binary } from "../agent.ts";

export class Source implements ScreenSource {
  readonly key: string;
  cols = 40;
  rows = 10;
  #stored = Buffer.alloc(0);
  end = 0;

  constructor(key: string) {
    this.key = key;
  }

  get start(): number {
    return this.end - this.#stored.length;
  }

  read(from: number, to: number): Uint8Array {
    if (from < this.start || to > this.end) throw new Error(`${from} to ${to} is not stored`);
    return Uint8Array.from(this.#stored.subarray(from - this.start, to - this.start));
  }

  write(text: string): void {
    const all = Buffer.concat([this.#stored, Buffer.from(text)]);
    this.end += all.length - this.#stored.length;
    this.#stored = all.subarray(Math.max(0, all.length - limits.terminalRingBytes));
  }
}

export type RealWorkers = {
  start: StartRenderWorker;
  /** All workers that were started so far. */
  pids: number[];
  running: () => number;
};

/** Starts render workers from the real binary. */
export function realWorkers(): RealWorkers {
  const pids: number[] = [];
  let running = 0;
  const start: StartRenderWorker = async () => {
    const child = spawn(binary, ["render"], { stdio: ["pipe", "pipe", "inherit"], env: {} });
    pids.push(child.pid ?? 0);
    running += 1;
    const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
    ended.then(() => {
      running -= 1;
    });
    child.stdin.on("error", () => {});
    const pipes: RenderWorkerPipes = {
      send: async (bytes) => child.stdin.write(bytes),
      listen: (onBytes) => child.stdout.on("data", onBytes),
      ended,
      end: async () => {
        child.kill("SIGKILL");
        await ended;
      },
    };
    return pipes;
  };
  return { start, pids, running: () => running };
}
