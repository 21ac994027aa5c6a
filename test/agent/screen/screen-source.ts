/**
 * Fakes the output of a terminal for the renderer, and starts real render workers, for tests without an agent.
 */
import { spawn } from "node:child_process";
import { Ring } from "../../../container/agent/terminals/ring.ts";
import type {
  RenderWorkerPipes,
  StartRenderWorker,
} from "../../../container/agent/terminals/screen/render-client.ts";
import type { ScreenSource } from "../../../container/agent/terminals/screen/rendering.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { binary } from "../agent.ts";

export class Source implements ScreenSource {
  readonly key: string;
  readonly ring = new Ring(limits.terminalRingBytes);
  size = { cols: 40, rows: 10 };

  constructor(key: string) {
    this.key = key;
  }

  write(text: string): void {
    this.ring.push(Buffer.from(text));
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
