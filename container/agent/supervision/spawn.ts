/** Spawns one process with exact arguments, an explicit environment and user, and no inherited descriptors. */
import { spawnWithHigherOomScore } from "./oom-score.ts";
import { type Exit, type Launch, ownProgram } from "./process-tree.ts";
import type { Reaper } from "./reaper.ts";

export type Spawned = { pid: number; exited: Promise<Exit> };

/** Synchronous up to the execve of the process, whose error it throws. */
export function spawn(launch: Launch, reaper: Reaper, extraFds: number[] = []): Spawned {
  const [, ...rest] = launch.argv;
  const start = () =>
    Bun.spawn([launch.program, ...rest], {
      argv0: launch.argv[0] ?? launch.program,
      cwd: launch.cwd,
      env: launch.env,
      stdio: [launch.stdin, launch.stdout, launch.stderr, ...extraFds],
      ...launch.user,
    });
  const child = launch.program === ownProgram ? start() : spawnWithHigherOomScore(start);
  reaper.own(child.pid);
  const exited = child.exited.then((): Exit => {
    reaper.disown(child.pid);
    const { exitCode, signalCode } = child;
    return { exitCode, signal: signalCode === null ? null : String(signalCode) };
  });
  return { pid: child.pid, exited };
}
