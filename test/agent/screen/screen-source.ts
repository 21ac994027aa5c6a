/**
 * Owns a terminal's output as whoever draws it is given it, and the real process that draws, for tests without an agent.
 * Does not own PTYs: what is written comes from the test.
 */
import { spawn } from "node:child_process";
import type {
  DrawerPipes,
  StartDrawer,
} from "../../../container/agent/terminals/screen/render-client.ts";
import type { ScreenSource } from "../../../container/agent/terminals/screen/screens.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { binary } from "../agent.ts";

export class Source implements ScreenSource {
  readonly key: string;
  cols = 40;
  rows = 10;
  #kept = Buffer.alloc(0);
  end = 0;

  constructor(key: string) {
    this.key = key;
  }

  get start(): number {
    return this.end - this.#kept.length;
  }

  read(from: number, to: number): Uint8Array {
    if (from < this.start || to > this.end) throw new Error(`${from} to ${to} is not here`);
    return Uint8Array.from(this.#kept.subarray(from - this.start, to - this.start));
  }

  write(text: string): void {
    const all = Buffer.concat([this.#kept, Buffer.from(text)]);
    this.end += all.length - this.#kept.length;
    this.#kept = all.subarray(Math.max(0, all.length - limits.terminalRingBytes));
  }
}

export type Started = { start: StartDrawer; pids: number[]; alive: () => number };

/** The real one; `pids` are those that were started so far. */
export function realDrawers(): Started {
  const pids: number[] = [];
  let alive = 0;
  const start: StartDrawer = async () => {
    const child = spawn(binary, ["draw"], { stdio: ["pipe", "pipe", "inherit"], env: {} });
    pids.push(child.pid ?? 0);
    alive += 1;
    const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
    ended.then(() => {
      alive -= 1;
    });
    child.stdin.on("error", () => {});
    const pipes: DrawerPipes = {
      send: async (bytes) => child.stdin.write(bytes),
      hear: (take) => child.stdout.on("data", take),
      ended,
      end: async () => {
        child.kill("SIGKILL");
        await ended;
      },
    };
    return pipes;
  };
  return { start, pids, alive: () => alive };
}
