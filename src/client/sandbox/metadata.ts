/** The metadata of a sandbox. */
import type { MetadataAnswer, MetadataPatch, Metadata as Values } from "../../protocol/metadata.ts";
import type { CallOptions } from "../http/request.ts";
import type { SandboxCalls } from "../verbs.ts";

/** Your own keys and values on a sandbox, with a version that grows with each change. */
export class Metadata {
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  /** The values and their version. */
  get(options: CallOptions = {}): Promise<MetadataAnswer> {
    return this.#calls.metadata(options);
  }

  /**
   * Sets these keys and keeps the others; `null` removes a key. With `ifMatch` only if the version is this one.
   *
   * @example
   * ```ts
   * await sandbox.metadata.patch({ owner: "ci", stage: null });
   * ```
   */
  patch(
    values: MetadataPatch,
    { ifMatch, ...options }: CallOptions & { ifMatch?: number } = {},
  ): Promise<MetadataAnswer> {
    const condition = ifMatch === undefined ? {} : { ifMatch };
    return this.#calls.patchMetadata(values, { ...options, ...condition });
  }

  /** Sets these keys and removes all others, if the version is `ifMatch`. */
  replace(values: Values, options: CallOptions & { ifMatch: number }): Promise<MetadataAnswer> {
    return this.#calls.replaceMetadata(values, options);
  }
}
