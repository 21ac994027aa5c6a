/**
 * Owns the line of an agent in memory: calls come by it as messages, and are answered as the same requests are; what
 * takes or is longer waits to be taken. Its faults are set by tests.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import { later, readCall, writeAnswer } from "../../../src/protocol/internal/agent-channel.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeAgent } from "./agent.ts";
import type { Call } from "./call.ts";
import { hasSockets, type Socket, socketPair, upgraded } from "./socket-pair.ts";

/** What becomes of a call by the line: it is done, and then… */
export type LineFault =
  | "silent"
  | "cut"
  /** …handed over, and nobody has it. */
  | "lost"
  /** These are said in place of the answer, in which `ID` stands for the call's own; what is a number is so many bytes. */
  | { says: readonly (string | number)[] };

export class FakeLine {
  /** False: an agent of before, without the route. */
  isThere = hasSockets;
  fault: LineFault | undefined;
  /** Of those that are open. */
  readonly sockets = new Set<Socket>();
  readonly #later = new Map<string, Promise<Response>>();

  end(): void {
    for (const socket of this.sockets) socket.close(1011, "gone");
    this.sockets.clear();
  }

  /** `answered`: as a request from outside is. */
  open(agent: FakeAgent, call: Call, answered: (request: Request) => Promise<Response>): Response {
    if (!this.isThere) throw new BerthError("not_found", "No such route.");
    if (call.request.headers.get("upgrade") !== "websocket") {
      throw new BerthError("upgrade_required", "the line is a WebSocket");
    }
    const [theirs, ours] = socketPair();
    ours.accept();
    this.sockets.add(ours);
    ours.addEventListener("close", () => {
      this.sockets.delete(ours);
      ours.close(1000, "done");
    });
    ours.addEventListener("message", ({ data }) => {
      void this.#answer(agent, ours, data, answered).catch(() => undefined);
    });
    return upgraded(theirs, call.headers);
  }

  /** Of a call that was handed over; once. */
  async take(id: string): Promise<Response> {
    const answer = this.#later.get(id);
    this.#later.delete(id);
    if (answer === undefined) throw new BerthError("not_found", "no answer waits under this id");
    return answer;
  }

  async #answer(
    agent: FakeAgent,
    socket: Socket,
    data: unknown,
    answered: (request: Request) => Promise<Response>,
  ): Promise<void> {
    const call = readCall(data);
    if (call === undefined) return socket.close(1002, "no call of a line");
    const { id, path, fence, requestId, body } = call;
    const headers = {
      authorization: `Bearer ${agent.secret}`,
      [agentHeaders.fence]: String(fence),
      [agentHeaders.requestId]: requestId,
    };
    const answer = answered(new Request(`http://agent${path}`, { method: "POST", headers, body }));
    // It may die over it, and nobody may ask.
    answer.catch(() => undefined);
    if (this.fault !== undefined) {
      await answer;
      return this.#spoil(this.fault, socket, id);
    }
    const soon = await Promise.race([answer, pause(limits.execHeartbeatAfterMs)]);
    const json = await soon?.clone().text();
    if (soon !== undefined && json !== undefined && json.length <= limits.answerWholeBytesMax) {
      return socket.send(writeAnswer({ id, status: soon.status, json }));
    }
    this.#later.set(id, answer);
    socket.send(writeAnswer({ id, status: later, json: "" }));
  }

  #spoil(fault: LineFault, socket: Socket, id: string): void {
    if (fault === "cut") socket.close(1011, "cut");
    if (fault === "lost") socket.send(writeAnswer({ id, status: later, json: "" }));
    if (typeof fault === "string") return;
    for (const said of fault.says) {
      socket.send(typeof said === "number" ? new Uint8Array(said) : said.replaceAll("ID", id));
    }
  }
}

function pause(ms: number): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(undefined), ms);
  });
}
