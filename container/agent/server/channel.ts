/**
 * Owns the line of one object: commands come by it as messages, and short answers go back by it. What takes or is longer
 * waits to be taken by a request (later.ts). Does not own what is called: each call is answered as the same request is.
 */
import {
  type LineCall,
  later,
  readCall,
  writeAnswer,
} from "../../../src/protocol/internal/agent-channel.ts";
import { agentHeaders, agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { withBody } from "./body.ts";
import type { Later } from "./deferred.ts";
import { isUnderWay } from "./under-way.ts";

const protocolError = 1002;

/** Their answers are JSON and end with the command. Those of other routes may be streams, or sockets. */
const commandPath = new RegExp(`^(${agentPaths.exec}|${agentPaths.sessions}/[\\w-]+/exec)$`);

type Socket = { send(message: string): unknown; close(code: number, reason: string): void };

export class Line {
  readonly #answered: (request: Request) => Promise<Response | undefined>;
  readonly #later: Later;
  /** Whoever has called is gone with the line. */
  readonly #callers = new Set<AbortController>();

  constructor(answered: (request: Request) => Promise<Response | undefined>, waiting: Later) {
    this.#answered = answered;
    this.#later = waiting;
  }

  open(): void {}

  message(socket: Socket, message: string | Buffer): void {
    const call = readCall(message);
    if (call !== undefined && commandPath.test(call.path)) void this.#answer(socket, call);
    else socket.close(protocolError, "no call of a line");
  }

  close(): void {
    for (const caller of this.#callers) caller.abort();
    this.#callers.clear();
  }

  async #answer(socket: Socket, call: LineCall): Promise<void> {
    const caller = new AbortController();
    this.#callers.add(caller);
    try {
      const response = await this.#answered(requestOf(call, caller.signal));
      const { id } = call;
      // A command's never becomes a socket.
      if (response === undefined) return;
      const { status } = response;
      const short = isUnderWay(response) ? undefined : await response.bytes();
      // Nobody is left who could be told, or would ask for it.
      if (caller.signal.aborted) {
        if (short === undefined) response.body?.cancel().catch(() => {});
        return;
      }
      if (short !== undefined && short.length <= limits.answerWholeBytesMax) {
        const json = Buffer.from(short.buffer, short.byteOffset, short.byteLength).toString("utf8");
        socket.send(writeAnswer({ id, status, json }));
        return;
      }
      this.#later.keep(id, short === undefined ? response : new Response(short, response), caller);
      socket.send(writeAnswer({ id, status: later, json: "" }));
    } finally {
      this.#callers.delete(caller);
    }
  }
}

function requestOf({ path, fence, requestId, body }: LineCall, signal: AbortSignal): Request {
  const headers = { [agentHeaders.fence]: String(fence), [agentHeaders.requestId]: requestId };
  return withBody(new Request(`http://agent${path}`, { method: "POST", headers, signal }), body);
}
