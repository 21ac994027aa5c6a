/**
 * Tracks the sockets that scoped tokens and removable keys opened. Revoking a generation of tokens, or a key, closes them,
 * and refuses a socket that arrives later.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentRevoked } from "../../../src/protocol/internal/agent.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { revokedClose } from "../../../src/protocol/internal/socket-call.ts";
import { readJson } from "./body.ts";
import { readNumberHeader } from "./fields.ts";

type ClosableSocket = { close(code: number, reason: string): void };

/** Without either, a key opened the socket that only a restart of the server removes. */
export type SocketOpener = { generation: number | undefined; keyId: string | undefined };

export class TokenSockets {
  /** Tokens of a lower generation are revoked. */
  #validGeneration = 0;
  readonly #endedKeys = new Set<string>();
  readonly #openers = new Map<ClosableSocket, SocketOpener>();

  /** Call before the upgrade. */
  admit(opener: SocketOpener): void {
    if (!this.#isEnded(opener)) return;
    throw new BerthError("unauthenticated", "The key or token was revoked.");
  }

  /** False: the token or key was revoked while the socket was upgraded. */
  add(socket: ClosableSocket, opener: SocketOpener): boolean {
    if (this.#isEnded(opener)) return false;
    this.#openers.set(socket, opener);
    return true;
  }

  remove(socket: ClosableSocket): void {
    this.#openers.delete(socket);
  }

  revoke({ generation, keyId }: AgentRevoked): AgentRevoked {
    this.#validGeneration = Math.max(this.#validGeneration, generation);
    if (keyId !== undefined) this.#endedKeys.add(keyId);
    for (const [socket, opener] of [...this.#openers]) {
      if (this.#isEnded(opener)) closeRevoked(socket);
    }
    return { generation: this.#validGeneration };
  }

  #isEnded({ generation, keyId }: SocketOpener): boolean {
    if (keyId !== undefined && this.#endedKeys.has(keyId)) return true;
    return generation !== undefined && generation < this.#validGeneration;
  }
}

export function closeRevoked(socket: ClosableSocket): void {
  socket.close(revokedClose.code, revokedClose.reason);
}

export async function handleRevoked(request: Request, sockets: TokenSockets): Promise<Response> {
  return Response.json(sockets.revoke(await readJson<AgentRevoked>(request)));
}

export function readOpener(headers: Headers): SocketOpener {
  return {
    generation: readNumberHeader(headers, agentHeaders.generation),
    keyId: headers.get(agentHeaders.keyId) ?? undefined,
  };
}
