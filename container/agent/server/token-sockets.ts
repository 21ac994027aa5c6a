/**
 * Owns the sockets that tokens opened, by the generation of their token: revoked, they are closed, and one that comes
 * later than the word of it is not let in. Does not own whose token is good: the object knows.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentRevoked } from "../../../src/protocol/internal/agent.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { revokedClose } from "../../../src/protocol/internal/socket-names.ts";
import { readJson } from "./body.ts";
import { callOf, numberOf, wholeOf } from "./fields.ts";

type Closes = { close(code: number, reason: string): void };

const range = { min: 0, max: Number.MAX_SAFE_INTEGER };

export class Guests {
  /** Tokens below it are revoked. */
  #good = 0;
  readonly #inside = new Map<Closes, number>();

  /** Before the upgrade. `undefined`: by a key, whose sockets are never counted here. */
  admit(generation: number | undefined): void {
    if (generation === undefined || generation >= this.#good) return;
    throw new BerthError("unauthenticated", "The token was revoked.");
  }

  /** False: while it was upgraded its token was revoked. */
  enter(socket: Closes, generation: number | undefined): boolean {
    if (generation === undefined) return true;
    if (generation < this.#good) return false;
    this.#inside.set(socket, generation);
    return true;
  }

  leave(socket: Closes): void {
    this.#inside.delete(socket);
  }

  revoke(good: number): AgentRevoked {
    this.#good = Math.max(this.#good, good);
    for (const [socket, generation] of [...this.#inside]) {
      if (generation < this.#good) closeRevoked(socket);
    }
    return { generation: this.#good };
  }
}

export function closeRevoked(socket: Closes): void {
  socket.close(revokedClose.code, revokedClose.reason);
}

export async function answerRevoked(request: Request, guests: Guests): Promise<Response> {
  const { generation } = callOf(await readJson(request), ["generation"]);
  return Response.json(guests.revoke(numberOf(generation, "generation", range)));
}

export function generationOf(headers: Headers): number | undefined {
  const told = headers.get(agentHeaders.generation);
  return told === null ? undefined : wholeOf(told, agentHeaders.generation, range);
}
