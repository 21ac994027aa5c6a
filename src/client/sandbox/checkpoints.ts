/** The checkpoints of a sandbox. */
import type { Checkpoint } from "../../protocol/checkpoint.ts";
import type { Sandbox as SandboxInfo } from "../../protocol/sandbox.ts";
import type { CallOptions, ChangeOptions } from "../http/request.ts";
import { type Page, toPage } from "../page.ts";
import type { SandboxCalls } from "../verbs.ts";

/** Checkpoints: saved file trees of a sandbox. `berth.create({ from: id })` makes another sandbox with one. */
export class Checkpoints {
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  /**
   * Saves the file tree. What runs is frozen while its files are copied.
   *
   * @example
   * ```ts
   * const { id } = await sandbox.checkpoints.create("before the upgrade");
   * await sandbox.checkpoints.restore(id);
   * ```
   */
  create(name?: string, options: ChangeOptions = {}): Promise<Checkpoint> {
    return this.#calls.makeCheckpoint(name === undefined ? {} : { name }, options);
  }

  /** Restarts the sandbox with the files of a checkpoint. What runs ends, and files written later are lost. */
  restore(id: string, options: ChangeOptions = {}): Promise<SandboxInfo> {
    return this.#calls.restore(id, options);
  }

  /** One checkpoint. */
  get(id: string, options: CallOptions = {}): Promise<Checkpoint> {
    return this.#calls.checkpoint(id, options);
  }

  /** All checkpoints, newest first. */
  async list(options: CallOptions = {}): Promise<Page<Checkpoint>> {
    const { checkpoints, nextCursor } = await this.#calls.checkpoints(options);
    return toPage(checkpoints, { nextCursor });
  }

  /** Removes a checkpoint. */
  delete(id: string, options: CallOptions = {}): Promise<Checkpoint> {
    return this.#calls.removeCheckpoint(id, options);
  }
}
