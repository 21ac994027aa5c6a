/** The tokens of a sandbox. */
import type { Token, TokenCall } from "../../protocol/rights.ts";
import type { CallOptions } from "../http/request.ts";
import type { SandboxCalls } from "../verbs.ts";

/** Tokens: keys for others that are valid for one sandbox, with some of the rights, for some time. */
export class Tokens {
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  /**
   * Makes a token. It is shown only once.
   *
   * @example
   * ```ts
   * const { token } = await sandbox.tokens.create({ rights: ["read", "exec"], ttlMs: 3_600_000 });
   * ```
   */
  create(
    input: Pick<TokenCall, "rights"> & Partial<TokenCall>,
    options: CallOptions = {},
  ): Promise<Token> {
    return this.#calls.createToken({ ...input, ...options });
  }

  /** Makes all tokens of the sandbox invalid and closes what they opened. Needs the right `admin`. */
  async deleteAll(options: CallOptions = {}): Promise<void> {
    await this.#calls.revokeTokens(options);
  }
}
