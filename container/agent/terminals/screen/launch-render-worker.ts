/** Starts a render worker: this same program in another mode, in a process tree of its own as a command has. */
import { closeSync } from "node:fs";
import { singleThreadedBun } from "../../../engine/jail/bun-options.ts";
import { openPipe } from "../../../engine/jail/descriptors.ts";
import { PipeReader } from "../../kernel/pipe.ts";
import {
  ownProgram,
  type ProcessSupervisor,
  type ProcessTree,
} from "../../supervision/process-tree.ts";
import type { RenderWorkerPipes, StartRenderWorker } from "./render-client.ts";

const stderrFd = 2;

export function renderWorkerStarter(supervisor: ProcessSupervisor): StartRenderWorker {
  return async () => {
    const [commandsRead, commandsWrite] = openPipe();
    const [responsesRead, responsesWrite] = openPipe();
    try {
      const tree = await supervisor.start({
        program: ownProgram,
        argv: ["berth-agent", "render"],
        cwd: "/",
        env: singleThreadedBun,
        stdin: commandsRead,
        stdout: responsesWrite,
        stderr: stderrFd,
        user: undefined,
      });
      return new WorkerPipes(tree, commandsWrite, responsesRead);
    } catch (error) {
      closeSync(commandsWrite);
      closeSync(responsesRead);
      throw error;
    } finally {
      closeSync(commandsRead);
      closeSync(responsesWrite);
    }
  };
}

class WorkerPipes implements RenderWorkerPipes {
  readonly ended: Promise<void>;
  readonly #tree: ProcessTree;
  readonly #commandsFd: number;
  readonly #commands: Bun.FileSink;
  readonly #responsesFd: number;
  readonly #closed = Promise.withResolvers<void>();
  #reader: PipeReader | undefined;
  #ending: Promise<void> | undefined;

  constructor(tree: ProcessTree, commandsFd: number, responsesFd: number) {
    this.#tree = tree;
    this.#commandsFd = commandsFd;
    this.#commands = Bun.file(commandsFd).writer();
    this.#responsesFd = responsesFd;
    this.ended = this.#closed.promise;
    tree.exited.then(() => this.end());
  }

  async send(bytes: Uint8Array): Promise<void> {
    this.#commands.write(bytes);
    await this.#commands.flush();
  }

  listen(onBytes: (bytes: Uint8Array) => void): void {
    this.#reader = new PipeReader(this.#responsesFd, onBytes);
  }

  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    // Also after an exit: this frees the cgroup or subreaper of the tree.
    await this.#tree.end().catch(() => {});
    if (this.#reader === undefined) closeSync(this.#responsesFd);
    this.#reader?.stop();
    await this.#reader?.ended;
    await Promise.resolve(this.#commands.end()).catch(() => {});
    // The writer does not close the descriptor.
    closeSync(this.#commandsFd);
    this.#closed.resolve();
  }
}
