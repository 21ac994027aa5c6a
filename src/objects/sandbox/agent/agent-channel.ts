/**
 * Owns the line to the agent of one life: a WebSocket for commands that follow each other closely. A request for each
 * costs workerd as much again as all else that it does for one. Does not own what an answer means (agent-ask.ts).
 *
 * It is opened beside the second of two calls within a moment, and closed after a second or two without one: an object
 * with an open socket stays in memory, which is billed.
 */

import type { Life } from "../../../core/sandbox/record.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import {
  type LineAnswer,
  type LineCall,
  readAnswer,
  writeCall,
} from "../../../protocol/internal/agent-channel.ts";
import { limits } from "../../../protocol/limits.ts";
import { AgentSilent, callAgent } from "../../../runtime/agent-client.ts";
import type { SandboxActor } from "../actor.ts";
import { isCurrent } from "./handles.ts";

const followsMs = 250;
const quietMs = 1_000;
/** An agent that lives answers the end of its line at once. */
const closeMs = 1_000;
/** What is longer has a request of its own: neither side holds many long messages. */
const callCharsMax = limits.answerWholeBytesMax;
/** An answer's head and body; in characters, of which there are never more than bytes. */
const answerCharsMax = limits.answerWholeBytesMax + 1024;

export class AgentLine {
  readonly #actor: SandboxActor;
  #open: { incarnation: string; line: OpenLine } | undefined;
  #isOpening = false;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** The life whose agent has no such route, or broke the line that it had: what waits for one is lost with it. */
  #without: string | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Undefined: there is none, and the call goes as a request. Rejects with AgentSilent, as that does. */
  ask(life: Life, call: LineCall): Promise<LineAnswer> | undefined {
    if (call.body.length > callCharsMax) return undefined;
    if (this.#open?.incarnation === life.incarnation) return this.#open.line.ask(call);
    const now = this.#actor.host.clock();
    if (Math.abs(now - this.#askedAt) < followsMs) this.#openBeside(life);
    this.#askedAt = now;
    return undefined;
  }

  #openBeside(life: Life): void {
    if (this.#isOpening || this.#without === life.incarnation) return;
    this.#isOpening = true;
    const opening = this.#opened(life).finally(() => {
      this.#isOpening = false;
    });
    this.#actor.host.background(opening);
  }

  /** Where it fails, calls go as requests: what became of the agent is found out by those. */
  async #opened(life: Life): Promise<void> {
    const headers = { upgrade: "websocket" };
    const cutOff = new AbortController();
    const named = { method: "GET", path: agentPaths.line, requestId: "line" } as const;
    const call = { ...named, headers, cutOff };
    const { reach, host } = this.#actor;
    const response = await callAgent(reach, life, call, limits.aliveMs).catch(() => undefined);
    const socket = socketOf(response);
    if (socket === undefined) {
      if (response !== undefined) this.#without = life.incarnation;
      await response?.body?.cancel().catch(() => undefined);
      return;
    }
    socket.accept();
    const line = new OpenLine({ socket, cutOff }, reach.timer, host, (isBroken) => {
      if (isBroken) this.#without = life.incarnation;
      if (this.#open?.line === line) this.#open = undefined;
    });
    if (!isCurrent(this.#actor, life)) return line.end();
    this.#open?.line.end();
    this.#open = { incarnation: life.incarnation, line };
  }
}

/** As the runtime of objects has it. */
type Socket = Pick<WebSocket, "send" | "close" | "addEventListener"> & { accept(): void };

/** Undefined: the agent did not open one. */
function socketOf(response: Response | undefined): Socket | undefined {
  return (response as { webSocket?: Socket | null } | undefined)?.webSocket ?? undefined;
}

type Waiting = Pick<PromiseWithResolvers<LineAnswer>, "resolve" | "reject"> & {
  cancel: () => void;
};

class OpenLine {
  readonly #socket: Socket;
  readonly #cutOff: AbortController;
  readonly #silence: SandboxActor["reach"]["timer"];
  readonly #host: Pick<SandboxActor["host"], "timer">;
  readonly #ended: (isBroken: boolean) => void;
  readonly #calls = new Map<string, Waiting>();
  /** Since it was last looked at: a clock may step. */
  #isUsed = false;
  #isOver = false;

  constructor(
    { socket, cutOff }: { socket: Socket; cutOff: AbortController },
    silence: SandboxActor["reach"]["timer"],
    host: Pick<SandboxActor["host"], "timer">,
    ended: (isBroken: boolean) => void,
  ) {
    this.#socket = socket;
    this.#cutOff = cutOff;
    this.#silence = silence;
    this.#host = host;
    this.#ended = ended;
    socket.addEventListener("message", ({ data }) => this.#heard(data));
    socket.addEventListener("close", () => this.#break());
    socket.addEventListener("error", () => this.#break());
    this.#endWhenQuiet();
  }

  /** Undefined: nothing was sent. */
  ask(call: LineCall): Promise<LineAnswer> | undefined {
    try {
      this.#socket.send(writeCall(call));
    } catch {
      this.#break();
      return undefined;
    }
    const { promise, resolve, reject } = Promise.withResolvers<LineAnswer>();
    // An agent that lives says within its heartbeat at least that it takes longer. All others here wait for the same one.
    const cancel = this.#silence(limits.agentHeadersMs, () => this.#break());
    this.#calls.set(call.id, { resolve, reject, cancel });
    this.#isUsed = true;
    return promise;
  }

  /** What was called and not answered: nobody knows what became of it. */
  end(isBroken = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ended(isBroken);
    this.#close();
    for (const { reject, cancel } of this.#calls.values()) {
      cancel();
      reject(new AgentSilent("the line to the agent has ended"));
    }
    this.#calls.clear();
  }

  #break(): void {
    this.end(true);
  }

  /** One whose end is not answered stays open, and keeps the object in memory: it is cut off. */
  #close(): void {
    const cancel = this.#host.timer(closeMs, () => this.#cutOff.abort());
    this.#socket.addEventListener("close", cancel);
    try {
      this.#socket.close();
    } catch {
      // It is closed already.
    }
  }

  #heard(data: unknown): void {
    if (this.#isOver) return;
    const isShort = typeof data === "string" && data.length <= answerCharsMax;
    const answer = isShort ? readAnswer(data) : undefined;
    const call = answer === undefined ? undefined : this.#calls.get(answer.id);
    // An agent may send anything: one that says what nobody asked for is not listened to.
    if (answer === undefined || call === undefined) {
      this.#break();
      return;
    }
    this.#calls.delete(answer.id);
    call.cancel();
    call.resolve(answer);
  }

  #endWhenQuiet(): void {
    const look = () => {
      if (this.#isOver) return;
      const isQuiet = this.#calls.size === 0 && !this.#isUsed;
      this.#isUsed = false;
      if (isQuiet) this.end();
      else this.#endWhenQuiet();
    };
    this.#host.timer(quietMs, look);
  }
}
