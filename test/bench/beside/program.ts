/**
 * Owns another program for the time of a row: on the loopback alone, its data in a folder of the run, ended by its process
 * id. Does not own what is asked of it.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Bench } from "../figure.ts";
import { isRunning, treeOf } from "../processes.ts";

const folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin"];
const readyMs = 20_000;
const endMs = 10_000;
const leavingMs = 3_000;

export function found(program: string): string | undefined {
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}

/** Free a moment ago; nothing else of this run asks for one meanwhile. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") throw new Error("no port");
      server.close(() => resolve(address.port));
    });
  });
}

/** Resolves when `isReady` does not throw any more. */
export async function startProgram(
  bench: Bench,
  path: string,
  args: string[],
  isReady: () => Promise<void>,
): Promise<void> {
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", path, ...args], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (text) => {
    said = `${said}${text}`.slice(-2000);
  });
  let isOver = false;
  const ended = new Promise<void>((resolve) =>
    child.once("exit", () => {
      isOver = true;
      resolve();
    }),
  );
  bench.ends(async () => {
    const pids = treeOf(child.pid ?? 0);
    // What it started for those who have left: it collects them itself, if it is let.
    const limit = performance.now() + leavingMs;
    while (treeOf(child.pid ?? 0).length > 1 && performance.now() < limit) await sleep(20);
    const timer = setTimeout(() => child.kill("SIGKILL"), endMs);
    child.kill("SIGTERM");
    await ended;
    clearTimeout(timer);
    return pids.filter(isRunning).map((pid) => `process ${pid} of ${path}`);
  });
  const limit = performance.now() + readyMs;
  for (;;) {
    try {
      return await isReady();
    } catch (thrown) {
      if (isOver || performance.now() > limit) {
        throw new Error(`${path} is not ready (${thrown}): ${said}`);
      }
      await sleep(50);
    }
  }
}
