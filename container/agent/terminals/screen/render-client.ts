/**
 * Owns the agent's side of one process that draws: one order at a time, each with a limit; whoever exceeds it is killed.
 * Does not own how it is started (launch-drawer.ts) nor what is drawn and when (screens.ts).
 */
import { limits } from "../../../../src/protocol/limits.ts";
import { type Answer, answers, type Order, orderBytes } from "./render-protocol.ts";

/** A process with a pipe each way. */
export interface DrawerPipes {
  send(bytes: Uint8Array): Promise<unknown>;
  /** Called once, at the start. */
  hear(take: (bytes: Uint8Array) => void): void;
  /** Resolves when it has ended by itself or was ended. */
  readonly ended: Promise<void>;
  /** Resolves when nothing of it is left. */
  end(): Promise<void>;
}

export type StartDrawer = () => Promise<DrawerPipes>;

const nothing = new Uint8Array();

export class DrawingProcess {
  readonly #pipes: DrawerPipes;
  #waiting: ((answer: Answer | undefined) => void) | undefined;
  #isOver = false;

  constructor(pipes: DrawerPipes) {
    this.#pipes = pipes;
    const coming = answers();
    pipes.hear((bytes) => {
      for (const answer of coming.take(bytes)) this.#answered(answer);
    });
    pipes.ended.then(() => {
      this.#isOver = true;
      this.#answered(undefined);
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Undefined: it has ended, or was killed because it did not answer. Not to be called before the last answer. */
  async ask(one: Partial<Order> & Pick<Order, "kind" | "terminal">): Promise<Answer | undefined> {
    if (this.#isOver) return undefined;
    const answer = new Promise<Answer | undefined>((resolve) => {
      this.#waiting = resolve;
    });
    const limit = setTimeout(() => this.end(), limits.terminalScreenMs);
    // A pipe that is broken is one whose process has died.
    this.#pipes
      .send(orderBytes({ cols: 0, rows: 0, bytes: nothing, ...one }))
      .catch(() => this.end());
    try {
      return await answer;
    } finally {
      clearTimeout(limit);
    }
  }

  async end(): Promise<void> {
    this.#isOver = true;
    this.#answered(undefined);
    await this.#pipes.end();
  }

  #answered(answer: Answer | undefined): void {
    const resolve = this.#waiting;
    this.#waiting = undefined;
    resolve?.(answer);
  }
}
