/** Spawns one process with exact arguments, an explicit environment and user, and no inherited descriptors. */
import { readFileSync, writeFileSync } from "node:fs";
import type { CommandNamespaces } from "../../engine/jail/enter.ts";
import { type Exit, type Launch, ownProgram } from "./process-tree.ts";
import type { Reaper } from "./reaper.ts";
import { spawnInside } from "./spawn-inside.ts";

export type Spawned = { pid: number; exited: Promise<Exit> };

/** Where commands run; `namespaces` is undefined where they run in those of the agent. */
export type SpawnSite = { reaper: Reaper; namespaces?: CommandNamespaces | undefined };

/** Synchronous up to the execve of the process, whose error it throws. */
export function spawn(launch: Launch, site: SpawnSite, extraFds: number[] = []): Spawned {
  const { reaper, namespaces } = site;
  const isOwn = launch.program === ownProgram;
  const start = () =>
    isOwn || namespaces === undefined
      ? spawnHere(launch, extraFds)
      : spawnInside(launch, namespaces);
  const child = isOwn ? start() : spawnWithHigherOomScore(start);
  reaper.own(child.pid);
  const exited = child.exited.then((): Exit => {
    reaper.disown(child.pid);
    const { exitCode, signalCode } = child;
    return { exitCode, signal: signalCode === null ? null : String(signalCode) };
  });
  return { pid: child.pid, exited };
}

function spawnHere(launch: Launch, extraFds: number[]) {
  const [, ...rest] = launch.argv;
  return Bun.spawn([launch.program, ...rest], {
    argv0: launch.argv[0] ?? launch.program,
    cwd: launch.cwd,
    env: launch.env,
    stdio: [launch.stdin, launch.stdout, launch.stderr, ...extraFds],
    ...launch.user,
  });
}

const highest = 1000;
/** The rest is more than an agent's share of all but the smallest memories. */
const shareAtSpawn = 0.75;

const retryMs = 5;

/** The score that this process started with. */
let ownScore: number | undefined;

/**
 * Makes the kernel kill commands before the agent when memory runs out. Otherwise it kills the largest process, which
 * among small ones is the agent, and the container ends with it.
 *
 * A child inherits its parent's score. So the parent raises its own score for the moment of the spawn, most of the way
 * and not entirely, so that running commands are still killed before the parent; then it raises the child's score to the
 * highest. A command may lower its score again, but not below its parent's. `start` must be synchronous.
 */
function spawnWithHigherOomScore<T extends { pid: number }>(start: () => T): T {
  ownScore ??= readOwnScore();
  setScore("self", Math.round(ownScore + (highest - ownScore) * shareAtSpawn));
  let child: T;
  try {
    child = start();
  } finally {
    setScore("self", ownScore);
  }
  // A parent that is not root may write to the child only a moment after the spawn returns.
  if (!setScore(child.pid, highest)) setTimeout(setScore, retryMs, child.pid, highest);
  return child;
}

function readOwnScore(): number {
  try {
    return Number(readFileSync("/proc/self/oom_score_adj", "latin1"));
  } catch {
    return 0;
  }
}

function setScore(pid: number | "self", value: number): boolean {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(value));
    return true;
  } catch {
    // The process has ended or must not be written to: it keeps the score that it was spawned with. In a jail of an
    // engine that is not root, a subreaper cannot write to itself.
    return false;
  }
}
