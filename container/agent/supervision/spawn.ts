/**
 * Owns the birth of one process: exact arguments, explicit environment, user, nothing inherited by accident.
 * Does not own where in the tree of processes it is born.
 */
import { outlived } from "./oom-score.ts";
import { type Exit, type Launch, ownProgram } from "./process-tree.ts";
import type { Reaper } from "./reaper.ts";

export type Spawned = { pid: number; exited: Promise<Exit> };

/** Synchronous up to the process's execve: throws what that said. */
export function spawn(launch: Launch, reaper: Reaper, more: number[] = []): Spawned {
  const [, ...rest] = launch.argv;
  const birth = () =>
    Bun.spawn([launch.program, ...rest], {
      argv0: launch.argv[0] ?? launch.program,
      cwd: launch.cwd,
      env: launch.env,
      stdio: [launch.stdin, launch.stdout, launch.stderr, ...more],
      ...launch.user,
    });
  const child = launch.program === ownProgram ? birth() : outlived(birth);
  reaper.own(child.pid);
  const exited = child.exited.then((): Exit => {
    reaper.disown(child.pid);
    const { exitCode, signalCode } = child;
    return { exitCode, signal: signalCode === null ? null : String(signalCode) };
  });
  return { pid: child.pid, exited };
}
