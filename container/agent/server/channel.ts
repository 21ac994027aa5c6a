/**
 * Serves the channel of one object: commands arrive as messages, and short responses return as messages.
 * Long or slow responses are deferred: they wait until a request fetches them.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import {
  type ChannelCall,
  deferredStatus,
  readCall,
  writeResult,
} from "../../../src/protocol/internal/agent-channel.ts";
import { agentHeaders, agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { attachBody } from "./body.ts";
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
      const deferred = bytes === undefined ? response : new Response(bytes, response);
      this.#deferred.add(id, deferred, caller);
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

type Deferred = {
  response: Response;
  caller: AbortController;
  timer: ReturnType<typeof setInterval>;
};

const tickMs = 1_000;
/** As long as an object waits for an agent. Ticks are counted because a container that is frozen for a snapshot does not tick. */
const ticks = limits.agentHeadersMs / tickMs;

/**
 * Keeps responses of channel calls until a request fetches them. A response that nobody fetches in time is dropped,
 * and its command ends as if its caller had disconnected.
 */
export class DeferredResponses {
  readonly #deferred = new Map<string, Deferred>();

  /** Aborts `caller` when the response is dropped, or when the request that fetched it is cancelled. */
  add(id: string, response: Response, caller: AbortController): void {
    this.#drop(id);
    let ticksLeft = ticks;
    const timer = setInterval(() => {
      ticksLeft -= 1;
      if (ticksLeft <= 0) this.#drop(id);
    }, tickMs);
    this.#deferred.set(id, { response, caller, timer });
  }

  /** A response can be fetched once. */
  take(request: Request, pathname: string): Response {
    const id = pathname.slice(agentPaths.deferred.length + 1);
    const deferred = this.#remove(id);
    if (deferred === undefined) {
      throw new BerthError("not_found", "No response waits under this id.");
    }
    const { response, caller } = deferred;
    const onAbort = () => caller.abort();
    request.signal.addEventListener("abort", onAbort, { once: true });
    if (request.signal.aborted) onAbort();
    return response;
  }

  #drop(id: string): void {
    const deferred = this.#remove(id);
    deferred?.caller.abort();
    deferred?.response.body?.cancel().catch(() => {});
  }

  #remove(id: string): Deferred | undefined {
    const deferred = this.#deferred.get(id);
    clearInterval(deferred?.timer);
    this.#deferred.delete(id);
    return deferred;
  }
}
