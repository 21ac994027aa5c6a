/** Runs another program during a row: on loopback only, with its data in a temporary folder, and ended by its PID. */
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

export function findProgram(program: string): string | undefined {
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}

/** Returns a port that was free a moment ago; nothing else in this run asks for one meanwhile. */
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

/** Resolves once `isReady` no longer throws. */
export async function startProgram(
  bench: Bench,
  path: string,
  args: string[],
  isReady: () => Promise<void>,
): Promise<void> {
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", path, ...args], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr = `${stderr}${text}`.slice(-2000);
  });
  let hasEnded = false;
  const ended = new Promise<void>((resolve) =>
    child.once("exit", () => {
      hasEnded = true;
      resolve();
    }),
  );
  bench.ends(async () => {
    const pids = treeOf(child.pid ?? 0);
    // Gives it time to end the processes that it started for clients that have disconnected.
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
      if (hasEnded || performance.now() > limit) {
        throw new Error(`${path} is not ready (${thrown}): ${stderr}`);
      }
      await sleep(50);
    }
  }
}
