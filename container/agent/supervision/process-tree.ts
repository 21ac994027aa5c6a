/**
 * Owns the form of a command's process tree: what can be asked of it, however it is held together.
 * Does not own the two ways of holding it: cgroup.ts and keeper.ts (with tender.ts) do.
 */
import type { User } from "../kernel/libc.ts";

/** The file of this very program, which runs in the other modes too. */
export const ownProgram = "/proc/self/exe";

export type Launch = {
  /** The file to run; `argv[0]` is only what the program is told it was called. */
  program: string;
  argv: string[];
  cwd: string;
  env: Record<string, string>;
  /** Descriptors of the caller's, who closes them after the start. */
  stdin: number | "ignore";
  stdout: number;
  stderr: number;
  user: User | undefined;
};

export type Exit = { exitCode: number | null; signal: string | null };

export interface Tree {
  /** Of the first process. */
  readonly pid: number;
  /** Of the first process. Resolves whatever becomes of the rest of the tree. */
  readonly exited: Promise<Exit>;
  /** TERM to every process there is now. */
  terminate(): void;
  /** To every process there is now. */
  signal(name: NodeJS.Signals): void;
  /** Resolves when no process is left, or after the limit. */
  empty(limitMs: number): Promise<void>;
  /** Kills all that is left. How many there were beside the first process; none is left then. Else Unended. */
  end(): Promise<number>;
}

export interface Forest {
  readonly kind: "cgroup" | "subreaper";
  /**
   * Rejects with the error of the kernel (`code`: ENOENT, EACCES, …) where the program cannot run, and with
   * `unavailable` where there is no room for a process. It may take a moment
   * until it is born: it counts as begun from the call on, and what ends it in between finds it when it is born.
   */
  start(launch: Launch): Promise<Tree>;
  /** The dead that trees left behind are collected, as far as that goes within the limit. */
  collect(limitMs: number): Promise<void>;
  /** Once every tree has ended: gives back what was taken from the machine. */
  close(): Promise<void>;
}

/** How long the kernel may take to be rid of processes that were killed. */
export const endLimitMs = 10_000;

/** Killed, but the kernel did not let go of them in time. They count for as long as they are there. */
export class Unended extends Error {
  readonly gone: Promise<unknown>;

  constructor(gone: Promise<unknown>) {
    super("killed processes did not end");
    this.gone = gone;
  }
}

/** How often it is looked whether they are gone at last. */
export const unendedLookMs = 100;
