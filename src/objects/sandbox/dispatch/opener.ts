/** What a stream, a WebSocket or a waiting call depends on: it ends when that is revoked. */
import type { Caller } from "../../../protocol/rights.ts";

/** Without either it was opened by a key that only a restart removes. */
export type Opener = {
  /** The generation of the token that opened it. */
  generation?: number | undefined;
  /** The key that opened it, or that created the token. */
  keyId?: string | undefined;
};

export function openerOf({ token, keyId }: Pick<Caller, "token" | "keyId">): Opener {
  return {
    ...(token === undefined ? {} : { generation: token.generation }),
    ...(keyId === undefined ? {} : { keyId }),
  };
}

export function isRevocable({ generation, keyId }: Opener): boolean {
  return generation !== undefined || keyId !== undefined;
}
