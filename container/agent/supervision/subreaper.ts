/**
 * Runs as the subreaper of one command where there are no cgroups: it becomes the parent of every orphan of the command's
 * tree. The agent reads the output and sends orders. It ends with its tree, and with the agent.
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { becomeSubreaper, replaceDescriptor } from "../kernel/libc.ts";
import {
  isAlive,
  killDescendants,
  listChildren,
  listDescendants,
  sendSignal,
} from "./proc-table.ts";
import { endLimitMs } from "./process-tree.ts";
import { Reaper } from "./reaper.ts";
import { type Spawned, spawn } from "./spawn.ts";
import {
  type Order,
  readMessages,
  type SubreaperEvent,
  type SubreaperLaunch,
  subreaperFd,
} from "./subreaper-protocol.ts";

const pollMs = 5;

export async function runSubreaper(): Promise<void> {
  becomeSubreaper();
  const reaper = new Reaper("reap");
  const command = start(reaper);
  if (command === undefined) return;
  let isCommandAlive = true;
  const treeEnded = command.exited.then(async ({ exitCode, signal }) => {
    isCommandAlive = false;
    send({ event: "exited", exitCode, signal });
    while (reaper.sweep() > 0) await Bun.sleep(pollMs);
  });
  const endOrdered = new Promise<void>((resolve) => {
    const orders = readMessages<Order>(subreaperFd.orders, (order) => {
      if (order.order === "end") resolve();
      else signalAll(order.name);
    });
    // The pipe ends with the agent, which then cannot send the order.
    orders.ended.then(resolve, resolve);
  });
  await Promise.race([treeEnded, endOrdered]);
  const alive = listDescendants(process.pid).filter(isAlive);
  const leftovers = alive.filter((pid) => !(isCommandAlive && pid === command.pid)).length;
  const deadline = performance.now() + endLimitMs;
  while (listChildren(process.pid).length > 0 && performance.now() < deadline) {
    killDescendants(process.pid);
    reaper.sweep();
    await Bun.sleep(1);
  }
  // Without an `ended` event, the agent waits for what the kernel has not ended.
  if (listChildren(process.pid).length > 0) return;
  await command.exited;
  send({ event: "ended", leftovers });
}

function start(reaper: Reaper): Spawned | undefined {
  const launch = JSON.parse(readFileSync(subreaperFd.launch, "utf8")) as SubreaperLaunch;
  closeSync(subreaperFd.launch);
  const { namespaces } = launch;
  const stdin = launch.emptyInput ? "ignore" : 0;
  try {
    const spawned = spawn({ ...launch, stdin, stdout: 1, stderr: 2 }, { reaper, namespaces });
    send({ event: "started", pid: spawned.pid });
    releaseStdio();
    return spawned;
  } catch (error) {
    send({ event: "refused", code: (error as NodeJS.ErrnoException).code ?? "EIO" });
    return undefined;
  }
}

function signalAll(name: NodeJS.Signals): void {
  for (const pid of listDescendants(process.pid)) sendSignal(pid, name);
}

/** Otherwise the command's pipes would stay open until the subreaper ends. */
function releaseStdio(): void {
  const devNull = openSync("/dev/null", "r+");
  for (const fd of [0, 1, 2]) replaceDescriptor(devNull, fd);
  closeSync(devNull);
}

function send(event: SubreaperEvent): void {
  try {
    writeSync(subreaperFd.events, `${JSON.stringify(event)}\n`);
  } catch {
    // The agent has ended, which the end of the orders pipe reports too.
  }
}
