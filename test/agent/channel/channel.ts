/**
 * Owns a line to a real agent for a test, spoken as the object speaks it: calls and what is told of each, and an end
 * that stops reading or is cut. Does not own the messages (src/protocol/internal/agent-channel.ts), nor what is asserted.
 */
import type { IncomingMessage } from "node:http";
import { createConnection, type Socket } from "node:net";
import { WebSocket } from "ws";
import {
  type LineAnswer,
  readAnswer,
  writeCall,
} from "../../../src/protocol/internal/agent-channel.ts";
import type { Agent } from "../agent.ts";
import { until } from "../until.ts";

type Called = { id?: string; path?: string; fence?: number; requestId?: string };

export class Line {
  /** All that was told, in that order. */
  readonly told: LineAnswer[] = [];
  closed: { code: number } | undefined;
  readonly #socket: WebSocket;
  readonly #tcp: Socket;
  #called = 0;

  static async open(agent: Agent): Promise<Line> {
    const { socket, tcp } = await opened(agent);
    if (socket === undefined) throw new Error("the agent did not open a line");
    return new Line(socket, tcp);
  }

  private constructor(socket: WebSocket, tcp: Socket) {
    this.#socket = socket;
    this.#tcp = tcp;
    socket.on("message", (bytes) => {
      const answer = readAnswer(String(bytes));
      if (answer === undefined) throw new Error(`no answer: ${String(bytes).slice(0, 200)}`);
      this.told.push(answer);
    });
    socket.on("close", (code) => {
      this.closed = { code };
    });
    socket.on("error", () => {});
  }

  /** Answers its id. */
  call(body: unknown, { id, path = "/v1/exec", fence = 0, requestId = "request1" }: Called = {}) {
    this.#called += 1;
    const own = id ?? `line${this.#called}`;
    const named =
      typeof body === "string"
        ? body
        : JSON.stringify({ execId: own, requestId, ...(body as object) });
    this.say(writeCall({ id: own, path, fence, requestId, body: named }));
    return own;
  }

  say(message: string | Uint8Array): void {
    this.#socket.send(message);
  }

  /** What is said meanwhile arrives as one. */
  atOnce(say: () => void): void {
    this.#tcp.cork();
    say();
    this.#tcp.uncork();
  }

  async answer(id: string): Promise<LineAnswer> {
    await until(`${id} is answered`, () => this.told.some((one) => one.id === id));
    return this.told.find((one) => one.id === id) as LineAnswer;
  }

  /** Of a command, which has ended. */
  async ask(body: unknown, called?: Called): Promise<{ status: number; answer: unknown }> {
    const { status, json } = await this.answer(this.call(body, called));
    return { status, answer: JSON.parse(json) };
  }

  resume(): void {
    this.#tcp.resume();
  }

  pause(): void {
    this.#tcp.pause();
  }

  /** As a lost connection. */
  cut(): void {
    this.#tcp.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.ended();
  }

  async ended(): Promise<number> {
    await until("the line is closed", () => this.closed !== undefined);
    return this.closed?.code ?? 0;
  }
}

type Opening = { headers?: Record<string, string>; path?: string; secret?: string };

/** The socket, or what the agent says in place of one. */
export function opened(
  agent: Agent,
  { headers, path = "/v1/line", secret = agent.secret }: Opening = {},
): Promise<{ socket: WebSocket | undefined; tcp: Socket; answer: IncomingMessage }> {
  return new Promise((resolve, reject) => {
    const tcp = createConnection(agent.port, "127.0.0.1");
    const socket = new WebSocket(`ws://127.0.0.1:${agent.port}${path}`, {
      headers: { authorization: `Bearer ${secret}`, ...headers },
      perMessageDeflate: false,
      createConnection: () => tcp,
    });
    let answer: IncomingMessage | undefined;
    socket.once("upgrade", (told) => {
      answer = told;
    });
    socket.once("open", () => resolve({ socket, tcp, answer: answer as IncomingMessage }));
    socket.once("unexpected-response", (_request, told) => {
      tcp.destroy();
      resolve({ socket: undefined, tcp, answer: told });
    });
    socket.once("error", reject);
  });
}
