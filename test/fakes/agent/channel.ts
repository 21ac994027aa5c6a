/**
 * The channel of an agent in memory: commands arrive as messages and are answered like HTTP requests; slow or long
 * responses are deferred. Tests set its faults.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import {
  deferredStatus,
  readCall,
  writeResult,
} from "../../../src/protocol/internal/agent-channel.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeAgent } from "./agent.ts";
import type { AgentCall } from "./call.ts";
import { hasSockets, type Socket, socketPair, upgradeResponse } from "./socket-pair.ts";

/** What happens to the response of a command over the channel. The command runs in each case. */
export type ChannelFault =
  | "silent"
  | "cut"
  /** The response is deferred, and then unknown. */
  | "lost"
  /** These messages are sent instead; `ID` becomes the id of the command, a number becomes as many bytes. */
  | { sends: readonly (string | number)[] };

export class FakeChannel {
  /** False: an old agent without the route. */
  isSupported = hasSockets;
  fault: ChannelFault | undefined;
  /** The open sockets. */
  readonly sockets = new Set<Socket>();
  readonly #later = new Map<string, Promise<Response>>();

  end(): void {
    for (const socket of this.sockets) socket.close(1011, "gone");
    this.sockets.clear();
  }

  /** `respond` handles a command like an HTTP request. */
  open(
    agent: FakeAgent,
    call: AgentCall,
    respond: (request: Request) => Promise<Response>,
  ): Response {
    if (!this.isSupported) throw new BerthError("not_found", "No such route.");
    if (call.request.headers.get("upgrade") !== "websocket") {
      throw new BerthError("upgrade_required", "the line is a WebSocket");
    }
    const [objectEnd, agentEnd] = socketPair();
    agentEnd.accept();
    this.sockets.add(agentEnd);
    agentEnd.addEventListener("close", () => {
      this.sockets.delete(agentEnd);
      agentEnd.close(1000, "done");
    });
    agentEnd.addEventListener("message", ({ data }) => {
      void this.#answer(agent, agentEnd, data, respond).catch(() => undefined);
    });
    return upgradeResponse(objectEnd, call.headers);
  }

  /** Fetches a deferred response, once. */
  async fetchDeferred(id: string): Promise<Response> {
    const answer = this.#later.get(id);
    this.#later.delete(id);
    if (answer === undefined) throw new BerthError("not_found", "no answer waits under this id");
    return answer;
  }

  async #answer(
    agent: FakeAgent,
    socket: Socket,
    data: unknown,
    respond: (request: Request) => Promise<Response>,
  ): Promise<void> {
    const call = readCall(data);
    if (call === undefined) return socket.close(1002, "no call of a line");
    const { id, path, fence, requestId, body } = call;
    const headers = {
      authorization: `Bearer ${agent.secret}`,
      [agentHeaders.fence]: String(fence),
      [agentHeaders.requestId]: requestId,
    };
    const answer = respond(new Request(`http://agent${path}`, { method: "POST", headers, body }));
    // The agent may die during the command, and the response may never be fetched.
    answer.catch(() => undefined);
    if (this.fault !== undefined) {
      await answer;
      return this.#spoil(this.fault, socket, id);
    }
    const early = await Promise.race([answer, waitMs(limits.execHeartbeatAfterMs)]);
    const json = await early?.clone().text();
    if (early !== undefined && json !== undefined && json.length <= limits.wholeResponseBytesMax) {
      return socket.send(writeResult({ id, status: early.status, json }));
    }
    this.#later.set(id, answer);
    socket.send(writeResult({ id, status: deferredStatus, json: "" }));
  }

  #spoil(fault: ChannelFault, socket: Socket, id: string): void {
    if (fault === "cut") socket.close(1011, "cut");
    if (fault === "lost") socket.send(writeResult({ id, status: deferredStatus, json: "" }));
    if (typeof fault === "string") return;
    for (const message of fault.sends) {
      socket.send(
        typeof message === "number" ? new Uint8Array(message) : message.replaceAll("ID", id),
      );
    }
  }
}

function waitMs(ms: number): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(undefined), ms);
  });
}
