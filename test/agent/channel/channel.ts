/** Opens a channel to a real agent as the object does: sends calls, collects responses, stops reading, disconnects. */
import type { IncomingMessage } from "node:http";
import { createConnection, type Socket } from "node:net";
import { WebSocket } from "ws";
import {
  type ChannelResult,
  deferredStatus,
  readResult,
  writeCall,
} from "../../../src/protocol/internal/agent-channel.ts";
import { until } from "../../until.ts";
import type { Agent } from "../agent.ts";
import { completeCall } from "../checked-call.ts";

type CallOptions = { id?: string; path?: string; fence?: number; requestId?: string };

export class ChannelClient {
  /** All responses, in the order of their arrival. */
  readonly responses: ChannelResult[] = [];
  closed: { code: number } | undefined;
  readonly #agent: Agent;
  readonly #socket: WebSocket;
  readonly #tcp: Socket;
  #calls = 0;

  static async open(agent: Agent): Promise<ChannelClient> {
    const { socket, tcp } = await openSocket(agent);
    if (socket === undefined) throw new Error("the agent did not open a channel");
    return new ChannelClient(agent, socket, tcp);
  }

  private constructor(agent: Agent, socket: WebSocket, tcp: Socket) {
    this.#agent = agent;
    this.#socket = socket;
    this.#tcp = tcp;
    socket.on("message", (bytes) => {
      const answer = readResult(String(bytes));
      if (answer === undefined) throw new Error(`not a response: ${String(bytes).slice(0, 200)}`);
      this.responses.push(answer);
    });
    socket.on("close", (code) => {
      this.closed = { code };
    });
    socket.on("error", () => {});
  }

  /** Returns the id of the call. */
  call(
    body: unknown,
    { id, path = "/v1/exec", fence = 0, requestId = "request1" }: CallOptions = {},
  ) {
    this.#calls += 1;
    const callId = id ?? `call${this.#calls}`;
    const text =
      typeof body === "string"
        ? body
        : JSON.stringify({ execId: callId, requestId, ...(body as object) });
    this.say(writeCall({ id: callId, path, fence, requestId, body: completeCall(path, text) }));
    return callId;
  }

  say(message: string | Uint8Array): void {
    this.#socket.send(message);
  }

  /** What `send` sends arrives at once. */
  sendTogether(send: () => void): void {
    this.#tcp.cork();
    send();
    this.#tcp.uncork();
  }

  async response(id: string): Promise<ChannelResult> {
    const find = () => this.responses.find((response) => response.id === id);
    await until(`${id} has a response`, () => find() !== undefined);
    return find() as ChannelResult;
  }

  /** Waits for the response of a command that ends. */
  async request(body: unknown, called?: CallOptions): Promise<{ status: number; answer: unknown }> {
    const { status, json } = await this.response(this.call(body, called));
    return { status, answer: JSON.parse(json) };
  }

  /** The result of a call; one that takes longer than a heartbeat is deferred and must be fetched. */
  async result(id: string): Promise<string> {
    const { status, json } = await this.response(id);
    return status === deferredStatus ? (await this.#agent.request(`/v1/later/${id}`)).text() : json;
  }

  /** Closes the channel, also when its test fails: `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.closed === undefined) await this.close();
  }

  resume(): void {
    this.#tcp.resume();
  }

  pause(): void {
    this.#tcp.pause();
  }

  /** Like a lost connection. */
  cut(): void {
    this.#tcp.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.waitForClose();
  }

  async waitForClose(): Promise<number> {
    await until("the channel is closed", () => this.closed !== undefined);
    return this.closed?.code ?? 0;
  }
}

type Opening = { headers?: Record<string, string>; path?: string; secret?: string };

/** Resolves with the socket, or with the response that refused it. */
export function openSocket(
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
    socket.once("upgrade", (response) => {
      answer = response;
    });
    socket.once("open", () => resolve({ socket, tcp, answer: answer as IncomingMessage }));
    socket.once("unexpected-response", (_request, response) => {
      tcp.destroy();
      resolve({ socket: undefined, tcp, answer: response });
    });
    socket.once("error", reject);
  });
}
