/**
 * Owns one session: its shell, whose turn it is, and its end, which comes once and takes along all it started.
 * Does not own which sessions there are (sessions.ts), nor what a turn is used for (command.ts, snapshot.ts).
 */
import type { AgentSessionCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Session as SessionView } from "../../../src/protocol/session.ts";
import { type Line, Turns } from "../exec/queue.ts";
import { within } from "../server/timeout.ts";
import { Unended } from "../supervision/process-tree.ts";
import type { End } from "./ends.ts";
import type { Pipes } from "./pipes.ts";
import type { Shell } from "./shell.ts";
import { type Reason, type Termination, terminated } from "./termination.ts";

/** Descriptors that the children of earlier commands may keep open: two for each. */
const heldPipesMax = 64;

const line: Line = {
  max: limits.sessionWaitersMax,
  tooMany: "commands wait for their turn in this session already",
  hint: "wait for one of them to end, or use another session",
};

export class Session {
  readonly id: string;
  readonly shell: Shell;
  readonly commandTimeoutMs: number;
  readonly createdAt = new Date().toISOString();
  readonly turns = new Turns(line);
  /** Resolves with how it ended; nothing of it is left then. */
  readonly over: Promise<Termination>;
  readonly #over = Promise.withResolvers<Termination>();
  readonly #held = new Set<Pipes>();
  #cwd: string;
  #isEnding = false;

  constructor({ id, commandTimeoutMs }: AgentSessionCall, shell: Shell, cwd: string) {
    this.id = id;
    this.commandTimeoutMs = commandTimeoutMs;
    this.shell = shell;
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
      state: this.turns.isTaken ? "busy" : "ready",
      pid: this.shell.tree.pid,
      cwd: this.#cwd,
      createdAt: this.createdAt,
      commandTimeoutMs: this.commandTimeoutMs,
      waiting: this.turns.waiting,
      incarnation,
    };
  }

  /** Rejects with how it ended, where it is ending. */
  async demandAlive(): Promise<void> {
    if (this.#isEnding) throw terminated(this.id, await this.over);
  }

  /** A variable can say anything; a folder has an absolute path. */
  stand({ cwd }: End): void {
    if (cwd.startsWith("/")) this.#cwd = cwd;
  }

  /** Of a command that is over, whose children may still write. */
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

  /** The first reason counts. A shell that has not exited by itself gets TERM, and what is left later KILL. */
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
      await tree.empty(limits.execKillGraceMs);
    }
    try {
      await tree.end();
    } catch (error) {
      // There are no others; one that has not ended in time counts for as long as it is there.
      if (error instanceof Unended) await error.gone;
      else console.error(`the end of session ${this.id}:`, error);
    }
    this.shell.close();
    const held = [...this.#held].map((pipes) => pipes.ended);
    if (!(await within(Promise.all(held), limits.execDrainMs))) {
      for (const pipes of this.#held) pipes.stop();
    }
    return { ...(await tree.exited), timedOut: reason === "timed_out", reason };
  }
}
