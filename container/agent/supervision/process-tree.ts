/**
 * The interface of a command's process tree and of the supervisor that starts it. See cgroup.ts and subreaper-client.ts
 * for the two implementations.
 */
import type { User } from "../kernel/libc.ts";

/** This program's own file, which also runs in the other modes (main.ts). */
export const ownProgram = "/proc/self/exe";

export type Launch = {
  /** The file to run; `argv[0]` is only the name that the program sees. */
  program: string;
  argv: string[];
  cwd: string;
  env: Record<string, string>;
  /** Descriptors that the caller closes after the start. */
  stdin: number | "ignore";
  stdout: number;
  stderr: number;
  user: User | undefined;
  /** Further groups of the user. */
  groups?: readonly number[] | undefined;
};

export type Exit = { exitCode: number | null; signal: string | null };

export interface ProcessTree {
  /** The pid of the first process. */
  readonly pid: number;
  /** Resolves when the first process exits, even if the rest of the tree continues. */
  readonly exited: Promise<Exit>;
  /** Sends TERM to every process that exists now. */
  terminate(): void;
  /** Sends the signal to every process that exists now. */
  signal(name: NodeJS.Signals): void;
  /** Resolves when no process is left, or after the limit. */
  waitUntilEmpty(limitMs: number): Promise<void>;
  /** Kills nothing: resolves, and returns the tree's resources, when no process is left by itself. */
  releaseWhenEmpty(): Promise<void>;
  /**
   * Kills everything that is left, and resolves with how many processes there were besides the first one. Rejects with
   * KillTimeoutError if the kernel does not end them in time.
   */
  end(): Promise<number>;
}

export interface ProcessSupervisor {
  readonly kind: "cgroup" | "subreaper";
  /**
   * Rejects with the kernel's error (`code`: ENOENT, EACCES, …) if the program cannot run, and with `unavailable` if
   * resources for a process are missing. The start may take a moment, but counts from the call on: an abort in between
   * ends the process as soon as it exists.
   */
  start(launch: Launch): Promise<ProcessTree>;
  /** Reaps the dead orphans that trees left behind, as far as possible within the limit. */
  reapOrphans(limitMs: number): Promise<void>;
  /** Call when every tree has ended: returns resources to the machine. */
  close(): Promise<void>;
}

/** How long the kernel may take to end killed processes. */
export const endLimitMs = 10_000;

/** The processes were killed, but the kernel did not end them in time. They count until they have ended. */
export class KillTimeoutError extends Error {
  /** Resolves when they have ended after all. */
  readonly ended: Promise<unknown>;

  constructor(ended: Promise<unknown>) {
    super("killed processes did not end");
    this.ended = ended;
  }
}

/** How often to check whether they have ended. */
export const killPollMs = 100;
