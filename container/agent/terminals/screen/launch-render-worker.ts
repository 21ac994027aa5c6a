/**
 * Owns the start of the process that draws: this same program in another mode, a tree of its own like a command's.
 * Does not own what it is told (drawing-process.ts).
 */
import { closeSync } from "node:fs";
import { oneThread } from "../../../engine/jail/runtime.ts";
import { openPipe } from "../../kernel/libc.ts";
import { PipeReader } from "../../kernel/pipe.ts";
import { type Forest, ownProgram, type Tree } from "../../supervision/process-tree.ts";
import type { DrawerPipes, StartDrawer } from "./render-client.ts";

const stderrFd = 2;

export function drawersIn(forest: Forest): StartDrawer {
  return async () => {
    const [ordersRead, ordersWrite] = openPipe();
    const [answersRead, answersWrite] = openPipe();
    try {
      const tree = await forest.start({
        program: ownProgram,
        argv: ["berth-agent", "draw"],
        cwd: "/",
        env: oneThread,
        stdin: ordersRead,
        stdout: answersWrite,
        stderr: stderrFd,
        user: undefined,
      });
      return new Pipes(tree, ordersWrite, answersRead);
    } catch (error) {
      closeSync(ordersWrite);
      closeSync(answersRead);
      throw error;
    } finally {
      closeSync(ordersRead);
      closeSync(answersWrite);
    }
  };
}

class Pipes implements DrawerPipes {
  readonly ended: Promise<void>;
  readonly #tree: Tree;
  readonly #ordersFd: number;
  readonly #orders: Bun.FileSink;
  readonly #answersFd: number;
  readonly #left = Promise.withResolvers<void>();
  #reader: PipeReader | undefined;
  #ending: Promise<void> | undefined;

  constructor(tree: Tree, ordersFd: number, answersFd: number) {
    this.#tree = tree;
    this.#ordersFd = ordersFd;
    this.#orders = Bun.file(ordersFd).writer();
    this.#answersFd = answersFd;
    this.ended = this.#left.promise;
    tree.exited.then(() => this.end());
  }

  async send(bytes: Uint8Array): Promise<void> {
    this.#orders.write(bytes);
    await this.#orders.flush();
  }

  hear(take: (bytes: Uint8Array) => void): void {
    this.#reader = new PipeReader(this.#answersFd, take);
  }

  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    // Its group or tender is given back, also where it ended by itself.
    await this.#tree.end().catch(() => {});
    if (this.#reader === undefined) closeSync(this.#answersFd);
    this.#reader?.stop();
    await this.#reader?.ended;
    await Promise.resolve(this.#orders.end()).catch(() => {});
    // The writer leaves it open.
    closeSync(this.#ordersFd);
    this.#left.resolve();
  }
}
