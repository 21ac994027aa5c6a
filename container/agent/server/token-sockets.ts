/**
 * Tracks the sockets that scoped tokens opened, by the generation of their token. Revoking a generation closes them, and
 * refuses a socket that arrives later.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentRevoked } from "../../../src/protocol/internal/agent.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { revokedClose } from "../../../src/protocol/internal/socket-call.ts";
import { readJson } from "./body.ts";
import { readNumberHeader } from "./fields.ts";

type ClosableSocket = { close(code: number, reason: string): void };

export class TokenSockets {
  /** Tokens of a lower generation are revoked. */
  #validGeneration = 0;
  readonly #generations = new Map<ClosableSocket, number>();

  /** Call before the upgrade. An `undefined` generation: a key opened the socket, and keys are not revoked here. */
  admit(generation: number | undefined): void {
    if (generation === undefined || generation >= this.#validGeneration) return;
    throw new BerthError("unauthenticated", "The token was revoked.");
  }

  /** False: the token was revoked while the socket was upgraded. */
  add(socket: ClosableSocket, generation: number | undefined): boolean {
    if (generation === undefined) return true;
    if (generation < this.#validGeneration) return false;
    this.#generations.set(socket, generation);
    return true;
  }

  remove(socket: ClosableSocket): void {
    this.#generations.delete(socket);
  }

  revoke(validGeneration: number): AgentRevoked {
    this.#validGeneration = Math.max(this.#validGeneration, validGeneration);
    for (const [socket, generation] of [...this.#generations]) {
      if (generation < this.#validGeneration) closeRevoked(socket);
    }
    return { generation: this.#validGeneration };
  }
}

export function closeRevoked(socket: ClosableSocket): void {
  socket.close(revokedClose.code, revokedClose.reason);
}

export async function handleRevoked(request: Request, sockets: TokenSockets): Promise<Response> {
  const { generation } = await readJson<AgentRevoked>(request);
  return Response.json(sockets.revoke(generation));
}

export function readGeneration(headers: Headers): number | undefined {
  return readNumberHeader(headers, agentHeaders.generation);
}
