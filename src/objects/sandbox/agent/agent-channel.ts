/**
 * The channel to the agent of one incarnation: a WebSocket for commands in quick succession, because an HTTP request
 * each costs workerd as much again as the rest of a command. It opens in the background after two commands in quick
 * succession and closes when idle: an open socket keeps the object in memory, which is billed.
 */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import {
  type ChannelCall,
  type ChannelResult,
  readResult,
  writeCall,
} from "../../../protocol/internal/agent-channel.ts";
import { limits } from "../../../protocol/limits.ts";
import { AgentUnreachable } from "../../../runtime/agent-client.ts";
import type { SandboxActor } from "../actor.ts";
import type { AgentRequest } from "./agent-client.ts";

const burstGapMs = 250;
const idleMs = 1_000;
/** A live agent answers the closing handshake at once. */
const closeMs = 1_000;
/** Longer commands go as HTTP requests, so that neither side buffers many long messages. */
const requestCharsMax = limits.wholeResponseBytesMax;
/** Head and body of a response, in characters, of which there are never more than bytes. */
const responseCharsMax = limits.wholeResponseBytesMax + 1024;

export class AgentChannel {
  readonly #actor: SandboxActor;
  #open: { incarnation: string; channel: OpenChannel } | undefined;
  #isOpening = false;
  #lastRequestAt = Number.NEGATIVE_INFINITY;
  /** The incarnation whose agent has no channel route, or broke the channel: its commands go as HTTP requests. */
  #unsupportedIn: string | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Undefined if no channel is open: the command then goes as an HTTP request. Rejects with AgentUnreachable. */
  request(agent: Incarnation, call: ChannelCall): Promise<ChannelResult> | undefined {
    if (call.body.length > requestCharsMax) return undefined;
    if (this.#open?.incarnation === agent.incarnation) return this.#open.channel.send(call);
    const now = this.#actor.host.clock();
    if (Math.abs(now - this.#lastRequestAt) < burstGapMs) this.#openInBackground(agent);
    this.#lastRequestAt = now;
    return undefined;
  }

  #openInBackground(agent: Incarnation): void {
    if (this.#isOpening || this.#unsupportedIn === agent.incarnation) return;
    this.#isOpening = true;
    const opening = this.#connect(agent).finally(() => {
      this.#isOpening = false;
    });
    this.#actor.host.waitUntil(opening);
  }

  /** A failure is ignored: commands go as HTTP requests, and those find out what happened to the agent. */
  async #connect(agent: Incarnation): Promise<void> {
    const { agentClient } = this.#actor;
    const abortController = new AbortController();
    const request: AgentRequest = {
      method: "GET",
      path: agentPaths.channel,
      headers: { upgrade: "websocket" },
      requestId: "line",
      abortController,
      headersMs: limits.probeTimeoutMs,
    };
    const response = await agentClient.send(agent, request).catch(() => undefined);
    const socket = socketOf(response);
    if (socket === undefined) {
      if (response !== undefined) this.#unsupportedIn = agent.incarnation;
      await response?.body?.cancel().catch(() => undefined);
      return;
    }
    socket.accept();
    const channel = new OpenChannel(this.#actor, socket, abortController, (isBroken) => {
      if (isBroken) this.#unsupportedIn = agent.incarnation;
      if (this.#open?.channel === channel) this.#open = undefined;
    });
    if (!this.#actor.isCurrent(agent)) return channel.end();
    this.#open?.channel.end();
    this.#open = { incarnation: agent.incarnation, channel };
  }
}

/** The client side of a WebSocket in workerd. */
type AgentSocket = Pick<WebSocket, "send" | "close" | "addEventListener"> & { accept(): void };

/** Undefined if the agent did not upgrade. */
function socketOf(response: Response | undefined): AgentSocket | undefined {
  return (response as { webSocket?: AgentSocket | null } | undefined)?.webSocket ?? undefined;
}

type PendingCall = Pick<PromiseWithResolvers<ChannelResult>, "resolve" | "reject"> & {
  cancel: () => void;
};

class OpenChannel {
  readonly #actor: SandboxActor;
  readonly #socket: AgentSocket;
  readonly #abortController: AbortController;
  readonly #onEnd: (isBroken: boolean) => void;
  readonly #calls = new Map<string, PendingCall>();
  /** Whether a command was sent since the last idle check. A flag, because the clock may step. */
  #wasUsed = false;
  #isOver = false;

  constructor(
    actor: SandboxActor,
    socket: AgentSocket,
    abortController: AbortController,
    onEnd: (isBroken: boolean) => void,
  ) {
    this.#actor = actor;
    this.#socket = socket;
    this.#abortController = abortController;
    this.#onEnd = onEnd;
    socket.addEventListener("message", ({ data }) => this.#onMessage(data));
    socket.addEventListener("close", () => this.#break());
    socket.addEventListener("error", () => this.#break());
    this.#endWhenIdle();
  }

  /** Undefined if nothing was sent. */
  send(call: ChannelCall): Promise<ChannelResult> | undefined {
    try {
      this.#socket.send(writeCall(call));
    } catch {
      this.#break();
      return undefined;
    }
    const { promise, resolve, reject } = Promise.withResolvers<ChannelResult>();
    // A live agent sends at least a heartbeat within this time. All pending commands wait for the same agent.
    const cancel = this.#actor.freeze.startTimer(limits.agentHeadersMs, () => this.#break());
    this.#calls.set(call.id, { resolve, reject, cancel });
    this.#wasUsed = true;
    return promise;
  }

  /** Closes the channel. The outcome of unanswered commands is unknown. */
  end(isBroken = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onEnd(isBroken);
    this.#close();
    for (const { reject, cancel } of this.#calls.values()) {
      cancel();
      reject(new AgentUnreachable("the channel to the agent has closed"));
    }
    this.#calls.clear();
  }

  #break(): void {
    this.end(true);
  }

  /** Aborts the connection if the agent does not answer: an open one keeps the object in memory. */
  #close(): void {
    const cancel = this.#actor.host.setTimer(closeMs, () => this.#abortController.abort());
    this.#socket.addEventListener("close", cancel);
    try {
      this.#socket.close();
    } catch {
      // It is already closed.
    }
  }

  #onMessage(data: unknown): void {
    if (this.#isOver) return;
    const isShort = typeof data === "string" && data.length <= responseCharsMax;
    const response = isShort ? readResult(data) : undefined;
    const call = response === undefined ? undefined : this.#calls.get(response.id);
    // An agent may send anything: a response to no pending command breaks the channel.
    if (response === undefined || call === undefined) {
      this.#break();
      return;
    }
    this.#calls.delete(response.id);
    call.cancel();
    call.resolve(response);
  }

  #endWhenIdle(): void {
    this.#actor.host.setTimer(idleMs, () => {
      if (this.#isOver) return;
      const isIdle = this.#calls.size === 0 && !this.#wasUsed;
      this.#wasUsed = false;
      if (isIdle) this.end();
      else this.#endWhenIdle();
    });
  }
}
