/**
 * Starts and ends a bare PTY over a WebSocket (bare/pty.ts) for one row.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { paths, tools } from "../../container/launch/paths.js";
import type { Bench } from "./figure.ts";
import { Http } from "./http.ts";

const endMs = 10_000;

export async function startBarePty(bench: Bench, argv: string[]): Promise<Http> {
  const script = `${paths.root}/test/bench/bare/pty.ts`;
  const child = spawn(tools.bun, [script, ...argv], { stdio: ["pipe", "pipe", "ignore"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  bench.ends(async () => {
    const timer = setTimeout(() => child.kill("SIGKILL"), endMs);
    child.stdin.end();
    await ended;
    clearTimeout(timer);
    return [];
  });
  for await (const line of createInterface({ input: child.stdout })) {
    return new Http(`http://127.0.0.1:${line}`, {});
  }
  throw new Error("the bare PTY did not start");
}
