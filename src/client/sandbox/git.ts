/** Repositories in a sandbox. */
import type { Cloned, CloneInput } from "../../protocol/file.ts";
import { type CloneOptions, clone } from "../streams/files.ts";
import type { SandboxCalls } from "../verbs.ts";

/** Repositories in a sandbox. */
export class Git {
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  /**
   * Clones a repository into the sandbox, and resolves when it is complete.
   *
   * @example
   * ```ts
   * await sandbox.git.clone("https://github.com/owner/name.git");
   * await sandbox.git.clone({ url: "https://github.com/owner/name.git", branch: "next", depth: 1 });
   * ```
   */
  clone(repository: string | CloneInput, options: CloneOptions = {}): Promise<Cloned> {
    const input = typeof repository === "string" ? { url: repository } : repository;
    return clone(this.#calls, input, options);
  }
}
