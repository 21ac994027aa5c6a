/** Sends commands to one render worker, one at a time, and kills a worker that does not respond in time. */
import { limits } from "../../../../src/protocol/limits.ts";
import {
  encodeCommand,
  type RenderCommand,
  type RenderResponse,
  responseReader,
} from "./render-protocol.ts";

/** A worker process with a pipe each way. */
export interface RenderWorkerPipes {
  send(bytes: Uint8Array): Promise<unknown>;
  /** Called once, at the start. */
  listen(onBytes: (bytes: Uint8Array) => void): void;
  /** Resolves when the process has ended, by itself or by `end`. */
  readonly ended: Promise<void>;
  /** Resolves when nothing of the process is left. */
  end(): Promise<void>;
}

export type StartRenderWorker = () => Promise<RenderWorkerPipes>;

const nothing = new Uint8Array();

export class RenderWorker {
  readonly #pipes: RenderWorkerPipes;
  #waiting: ((response: RenderResponse | undefined) => void) | undefined;
  #isOver = false;

  constructor(pipes: RenderWorkerPipes) {
    this.#pipes = pipes;
    const responses = responseReader();
    pipes.listen((bytes) => {
      for (const response of responses.push(bytes)) this.#settle(response);
    });
    pipes.ended.then(() => {
      this.#isOver = true;
      this.#settle(undefined);
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Undefined: the worker has ended, or was killed because it did not respond. Call again only after the response. */
  async request(
    command: Partial<RenderCommand> & Pick<RenderCommand, "kind" | "terminal">,
  ): Promise<RenderResponse | undefined> {
    if (this.#isOver) return undefined;
    const response = new Promise<RenderResponse | undefined>((resolve) => {
      this.#waiting = resolve;
    });
    const timer = setTimeout(() => this.end(), limits.terminalScreenMs);
    // A broken pipe means that the process has died.
    this.#pipes
      .send(encodeCommand({ cols: 0, rows: 0, bytes: nothing, ...command }))
      .catch(() => this.end());
    try {
      return await response;
    } finally {
      clearTimeout(timer);
    }
  }

  async end(): Promise<void> {
    this.#isOver = true;
    this.#settle(undefined);
    await this.#pipes.end();
  }

  #settle(response: RenderResponse | undefined): void {
    const resolve = this.#waiting;
    this.#waiting = undefined;
    resolve?.(response);
  }
}
