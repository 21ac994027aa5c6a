/** One session: its shell, its queue of turns, and its end, which comes once and ends everything that it started. */

import { BerthError, type ErrorFacts } from "../../../src/protocol/error-codes.ts";
import type { AgentEnding, AgentSessionCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Session as SessionView } from "../../../src/protocol/session.ts";
import { type QueueOptions, TurnQueue } from "../exec/queue.ts";
import type { SandboxEnv } from "../exec/sandbox-env.ts";
import { resolvesWithin } from "../server/timeout.ts";
import { type Exit, KillTimeoutError } from "../supervision/process-tree.ts";
import type { Pipes } from "./pipes.ts";
import type { CommandEnd } from "./script.ts";
import type { Shell } from "./shell.ts";

export type Reason = NonNullable<AgentEnding["reason"]>;

export type Termination = Exit & { timedOut: boolean; reason: Reason };

const reasons: Record<Reason, string> = {
  exited: "its shell exited",
  timed_out: "a command took longer than its time limit",
  ended: "it was ended",
  lease_lost: "the lease of its command was lost",
};

/** Descriptors that the children of earlier commands may keep open: two for each. */
const heldPipesMax = 64;

const queueOptions: QueueOptions = {
  max: limits.sessionWaitersMax,
  tooMany: "commands wait for their turn in this session already",
  hint: "wait for one of them to end, or use another session",
};

export class Session {
  readonly id: string;
  readonly shell: Shell;
  /** As its user sees it. */
  readonly sandboxEnv: SandboxEnv;
  readonly commandTimeoutMs: number;
  readonly createdAt = new Date().toISOString();
  readonly queue = new TurnQueue(queueOptions);
  /** Resolves with how the session ended, when nothing of it is left. */
  readonly over: Promise<Termination>;
  readonly #over = Promise.withResolvers<Termination>();
  readonly #held = new Set<Pipes>();
  #cwd: string;
  #isEnding = false;

  constructor(
    { id, commandTimeoutMs }: AgentSessionCall,
    shell: Shell,
    { sandboxEnv, cwd }: { sandboxEnv: SandboxEnv; cwd: string },
  ) {
    this.id = id;
    this.commandTimeoutMs = commandTimeoutMs;
    this.shell = shell;
    this.sandboxEnv = sandboxEnv;
    this.#cwd = cwd;
    this.over = this.#over.promise;
    shell.tree.exited.then(() => this.end("exited"));
  }

  get cwd(): string {
    return this.#cwd;
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  view(incarnation: string): SessionView {
    return {
      id: this.id,
      state: this.queue.isTaken ? "busy" : "ready",
      pid: this.shell.tree.pid,
      cwd: this.#cwd,
      createdAt: this.createdAt,
      commandTimeoutMs: this.commandTimeoutMs,
      waiting: this.queue.waiting,
      incarnation,
    };
  }

  /** If the session is ending, waits for its end and throws how it ended. */
  async requireAlive(): Promise<void> {
    if (this.#isEnding) throw sessionTerminated(this.id, await this.over);
  }

  /** Ignores relative paths: they come from a PWD that a command has set to something else. */
  setCwd({ cwd }: CommandEnd): void {
    if (cwd.startsWith("/")) this.#cwd = cwd;
  }

  /** Keeps the pipes of a finished command open for children of it that may still write. */
  hold(pipes: Pipes): void {
    pipes.drop();
    this.#held.add(pipes);
    pipes.ended.then(() => this.#held.delete(pipes));
    for (const oldest of this.#held) {
      if (this.#held.size <= heldPipesMax) break;
      this.#held.delete(oldest);
      oldest.stop();
    }
  }

  /** The first reason counts. A shell that has not exited by itself gets TERM; what is left later gets KILL. */
  end(reason: Reason): Promise<Termination> {
    if (!this.#isEnding) {
      this.#isEnding = true;
      this.#end(reason).then(this.#over.resolve);
    }
    return this.over;
  }

  async #end(reason: Reason): Promise<Termination> {
    const { tree } = this.shell;
    if (reason !== "exited") {
      tree.terminate();
      await tree.waitUntilEmpty(limits.execKillGraceMs);
    }
    try {
      await tree.end();
    } catch (error) {
      // A tree that the kernel does not end in time counts until it has ended.
      if (error instanceof KillTimeoutError) await error.ended;
      else console.error(`the end of session ${this.id}:`, error);
    }
    this.shell.close();
    const held = [...this.#held].map((pipes) => pipes.ended);
    if (!(await resolvesWithin(Promise.all(held), limits.execDrainMs))) {
      for (const pipes of this.#held) pipes.stop();
    }
    return { ...(await tree.exited), timedOut: reason === "timed_out", reason };
  }
}

/** `output`: what the command that was running had written when the session ended. */
export function sessionTerminated(
  id: string,
  { exitCode, signal, timedOut, reason }: Termination,
  output: ErrorFacts = {},
): BerthError {
  return new BerthError("session_terminated", `Session ${id} has ended: ${reasons[reason]}.`, {
    hint: "POST /sessions with this id creates a new one, without the old state.",
    facts: { exitCode, signal, timedOut, reason, ...output },
  });
}

/** The error of the command that was running: a lost lease ends every command with the same code. */
export function commandInterrupted(
  id: string,
  termination: Termination,
  output: ErrorFacts,
): BerthError {
  const terminated = sessionTerminated(id, termination, output);
  if (termination.reason !== "lease_lost") return terminated;
  return new BerthError(
    "operation_interrupted",
    `The lease of this command was lost; it was ended, and session ${id} with it.`,
    {
      hint: "Files that it wrote before remain. Check them, and create the session again.",
      facts: { admitted: true, ...terminated.facts },
    },
  );
}
