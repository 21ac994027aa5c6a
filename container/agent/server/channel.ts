/**
 * Serves the channel of one object: commands arrive as messages, and short responses return as messages.
 * Long or slow responses wait in deferred.ts until a request fetches them.
 */
import {
  type ChannelCall,
  deferredStatus,
  readCall,
  writeResult,
} from "../../../src/protocol/internal/agent-channel.ts";
import { agentHeaders, agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { attachBody } from "./body.ts";
import type { DeferredResponses } from "./deferred.ts";
import { isStreaming } from "./streaming.ts";

const protocolError = 1002;

/** Only commands: their responses are JSON and end with the command. Other routes respond with streams or sockets. */
const commandPath = new RegExp(`^(${agentPaths.exec}|${agentPaths.sessions}/[\\w-]+/exec)$`);

type Socket = { send(message: string): unknown; close(code: number, reason: string): void };
type HandleRequest = (request: Request) => Promise<Response | undefined>;

export class Channel {
  readonly #handle: HandleRequest;
  readonly #deferred: DeferredResponses;
  /** One for each call that has no response yet; all of them are aborted when the channel closes. */
  readonly #callers = new Set<AbortController>();

  constructor(handle: HandleRequest, deferred: DeferredResponses) {
    this.#handle = handle;
    this.#deferred = deferred;
  }

  open(): void {}

  message(socket: Socket, message: string | Buffer): void {
    const call = readCall(message);
    if (call !== undefined && commandPath.test(call.path)) void this.#respond(socket, call);
    else socket.close(protocolError, "The message is not a command.");
  }

  close(): void {
    for (const caller of this.#callers) caller.abort();
    this.#callers.clear();
  }

  async #respond(socket: Socket, call: ChannelCall): Promise<void> {
    const caller = new AbortController();
    this.#callers.add(caller);
    try {
      const response = await this.#handle(toRequest(call, caller.signal));
      const { id } = call;
      // Commands never upgrade to a WebSocket.
      if (response === undefined) return;
      const { status } = response;
      const bytes = isStreaming(response) ? undefined : await response.bytes();
      // The channel is closed: nobody can receive the response or fetch it later.
      if (caller.signal.aborted) {
        if (bytes === undefined) response.body?.cancel().catch(() => {});
        return;
      }
      if (bytes !== undefined && bytes.length <= limits.wholeResponseBytesMax) {
        const json = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
        socket.send(writeResult({ id, status, json }));
        return;
      }
      this.#deferred.add(
        id,
        bytes === undefined ? response : new Response(bytes, response),
        caller,
      );
      socket.send(writeResult({ id, status: deferredStatus, json: "" }));
    } finally {
      this.#callers.delete(caller);
    }
  }
}

function toRequest({ path, fence, requestId, body }: ChannelCall, signal: AbortSignal): Request {
  const headers = { [agentHeaders.fence]: String(fence), [agentHeaders.requestId]: requestId };
  return attachBody(new Request(`http://agent${path}`, { method: "POST", headers, signal }), body);
}
