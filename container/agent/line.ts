/**
 * Owns the line of one object: commands come by it as messages, and short answers go back by it. What takes or is longer
 * waits to be taken by a request (later.ts). Does not own what is called: each call is answered as the same request is.
 */
import { type LineCall, later, readCall, writeAnswer } from "../../src/protocol/agent-line.ts";
import { agentHeaders } from "../../src/protocol/agent-wire.ts";
import { limits } from "../../src/protocol/limits.ts";
import { withBody } from "./body.ts";
import { isUnderWay } from "./heartbeat.ts";
import type { Later } from "./later.ts";
import type { AgentSocket } from "./socket.ts";

const protocolError = 1002;

export class Line implements AgentSocket {
  readonly #answered: (request: Request) => Promise<Response | undefined>;
  readonly #later: Later;
  /** Whoever has called is gone with the line. */
  readonly #callers = new Set<AbortController>();

  constructor(answered: (request: Request) => Promise<Response | undefined>, waiting: Later) {
    this.#answered = answered;
    this.#later = waiting;
  }

  open(): void {}

  message(socket: Bun.ServerWebSocket<AgentSocket>, message: string | Buffer): void {
    const call = readCall(message);
    if (call === undefined) socket.close(protocolError, "no call of a line");
    else void this.#answer(socket, call);
  }

  close(): void {
    for (const caller of this.#callers) caller.abort();
    this.#callers.clear();
  }

  async #answer(socket: Bun.ServerWebSocket<AgentSocket>, call: LineCall): Promise<void> {
    const caller = new AbortController();
    this.#callers.add(caller);
    try {
      const response = await this.#answered(requestOf(call, caller.signal));
      const { id } = call;
      if (response === undefined || caller.signal.aborted) {
        response?.body?.cancel().catch(() => {});
        return;
      }
      const { status } = response;
      const short = isUnderWay(response) ? undefined : await response.bytes();
      if (short !== undefined && short.length <= limits.answerWholeBytesMax) {
        socket.send(writeAnswer({ id, status, json: Buffer.from(short).toString("utf8") }));
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
