/**
 * Owns one command's tree where there are no cgroups: as subreaper it becomes the parent of every orphan below it.
 * Does not own output or time: the agent reads the pipes and gives the orders. Ends with its tree, and with the agent.
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { adoptOrphans, replaceDescriptor } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { childrenOf, descendantsOf, isAlive, killBelow, send } from "./proc-table.ts";
import { endLimitMs } from "./process-tree.ts";
import { Reaper } from "./reaper.ts";
import { type Spawned, spawn } from "./spawn.ts";
import { type Fact, type Order, type TenderLaunch, tenderFd } from "./subreaper-protocol.ts";

const pollMs = 5;

export async function tend(): Promise<void> {
  adoptOrphans();
  const reaper = new Reaper("collect");
  const command = start(reaper);
  if (command === undefined) return;
  let leaderLives = true;
  const treeGone = command.exited.then(async ({ exitCode, signal }) => {
    leaderLives = false;
    tell({ fact: "exited", exitCode, signal });
    while (reaper.sweep() > 0) await Bun.sleep(pollMs);
  });
  const toldToEnd = new Promise<void>((resolve) => {
    let text = "";
    const orders = new PipeReader(tenderFd.orders, (bytes) => {
      const lines = (text + Buffer.from(bytes).toString("latin1")).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) {
        const told = JSON.parse(line) as Order;
        if (told.order === "end") resolve();
        else signalAll(told.name);
      }
    });
    // The agent is gone: nobody is left to give the order.
    orders.ended.then(resolve, resolve);
  });
  await Promise.race([treeGone, toldToEnd]);
  const alive = descendantsOf(process.pid).filter(isAlive);
  const leftovers = alive.filter((pid) => !(leaderLives && pid === command.pid)).length;
  const deadline = performance.now() + endLimitMs;
  while (childrenOf(process.pid).length > 0 && performance.now() < deadline) {
    killBelow(process.pid);
    reaper.sweep();
    await Bun.sleep(1);
  }
  // Unsaid, what the kernel did not let go of is the agent's to wait for.
  if (childrenOf(process.pid).length > 0) return;
  await command.exited;
  tell({ fact: "ended", leftovers });
}

function start(reaper: Reaper): Spawned | undefined {
  const launch = JSON.parse(readFileSync(tenderFd.launch, "utf8")) as TenderLaunch;
  closeSync(tenderFd.launch);
  const { uid, gid } = launch;
  const user = uid === undefined || gid === undefined ? undefined : { uid, gid };
  const stdin = launch.emptyInput ? "ignore" : 0;
  try {
    const spawned = spawn({ ...launch, user, stdin, stdout: 1, stderr: 2 }, reaper);
    tell({ fact: "started", pid: spawned.pid });
    letGoOfPipes();
    return spawned;
  } catch (error) {
    tell({ fact: "refused", code: (error as NodeJS.ErrnoException).code ?? "EIO" });
    return undefined;
  }
}

function signalAll(name: NodeJS.Signals): void {
  for (const pid of descendantsOf(process.pid)) send(pid, name);
}

/** Else the command's pipes would not end before the tender does. */
function letGoOfPipes(): void {
  const nothing = openSync("/dev/null", "r+");
  for (const fd of [0, 1, 2]) replaceDescriptor(nothing, fd);
  closeSync(nothing);
}

function tell(fact: Fact): void {
  try {
    writeSync(tenderFd.facts, `${JSON.stringify(fact)}\n`);
  } catch {
    // The agent is gone; the orders' end says so too.
  }
}
