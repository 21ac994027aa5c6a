/** Connects a viewer to a terminal in tests. It can stop reading, acknowledging or answering pings. */
import type { IncomingHttpHeaders } from "node:http";
import { type RawData, WebSocket } from "ws";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import {
  type FromTerminal,
  type ToTerminal,
  terminalProtocol,
} from "../../../src/protocol/internal/terminal-frames.ts";
import { until } from "../../until.ts";
import type { Agent } from "../agent.ts";

export type ViewerOptions = {
  /** Offers the subprotocol with frames, unless false. */
  framed?: boolean;
  after?: number;
  mode?: "writer" | "viewer";
  /** The generation of the token that opens it. */
  generation?: number;
  /** The id by which a new connection replaces an earlier one. */
  viewer?: string;
  /** Does not acknowledge output. */
  silent?: boolean;
  /** Answers no ping either, as if its machine had disappeared. */
  mute?: boolean;
  /** Gets the output, which is otherwise collected. */
  take?: (bytes: Buffer, viewer: Viewer) => void;
};

const ackEveryBytes = 128 * 1024;

export class Viewer {
  readonly frames: FromTerminal[] = [];
  /** The headers of the response to the upgrade. */
  headers: IncomingHttpHeaders = {};
  /** Output without snapshots; collected unless `take` is set. */
  output: Buffer[] = [];
  snapshots: Buffer[] = [];
  take: ViewerOptions["take"];
  /** Offset of the next byte of output. */
  offset = 0;
  closed: { code: number; reason: string } | undefined;
  pings = 0;
  readonly #socket: WebSocket;
  readonly #options: ViewerOptions;
  #isCut = false;
  #snapshotIsNext = false;
  #acked = 0;

  static async open(
    agent: Pick<Agent, "port" | "secret">,
    id: string,
    options: ViewerOptions = {},
  ): Promise<Viewer> {
    const { generation, viewer } = options;
    const headers = {
      authorization: `Bearer ${agent.secret}`,
      ...(generation === undefined ? {} : { [agentHeaders.generation]: String(generation) }),
      ...(viewer === undefined ? {} : { [agentHeaders.reader]: viewer }),
    };
    return Viewer.openAt(`ws://127.0.0.1:${agent.port}/v1/terminals/${id}`, headers, options);
  }

  /** `url`: of the terminal, at an agent or at a server. */
  static async openAt(
    url: string,
    headers: Record<string, string>,
    options: ViewerOptions = {},
  ): Promise<Viewer> {
    const { framed = true, after, mode, mute } = options;
    const query = new URLSearchParams();
    if (after !== undefined) query.set("after", String(after));
    if (mode !== undefined) query.set("mode", mode);
    const socket = new WebSocket(`${url}/connect?${query}`, framed ? [terminalProtocol] : [], {
      headers,
      autoPong: mute !== true,
      perMessageDeflate: false,
    });
    const opened = new Viewer(socket, { ...options, framed });
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
      socket.once("unexpected-response", (_, { statusCode, statusMessage }) => {
        reject(new Error(`HTTP/1.1 ${statusCode} ${statusMessage}`));
        socket.terminate();
      });
    });
    return opened;
  }

  private constructor(socket: WebSocket, options: ViewerOptions) {
    this.#socket = socket;
    this.#options = options;
    this.take = options.take;
    this.offset = options.after ?? 0;
    socket.on("upgrade", ({ headers }) => {
      this.headers = headers;
    });
    socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    socket.on("ping", () => {
      this.pings++;
    });
    socket.on("error", () => {});
    socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
  }

  get text(): string {
    return Buffer.concat(this.output).toString();
  }

  /** Everything that was shown, snapshots first. */
  get shown(): string {
    return Buffer.concat([...this.snapshots, ...this.output]).toString();
  }

  get exit(): FromTerminal | undefined {
    return this.frames.find(({ type }) => type === "exit");
  }

  get size(): number {
    return this.output.reduce((sum, { length }) => sum + length, 0);
  }

  type(text: string | Uint8Array): void {
    this.#socket.send(Buffer.from(text as string));
  }

  say(frame: ToTerminal | string): void {
    this.#socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  ack(offset = this.offset): void {
    this.#acked = offset;
    this.say({ type: "ack", offset });
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Ends like a lost connection: nothing is received afterwards. */
  cut(): void {
    this.#isCut = true;
    this.#socket.terminate();
  }

  async close(): Promise<void> {
    this.#socket.close(1000);
    await until("the socket is closed", () => this.closed !== undefined);
  }

  async shows(text: string | RegExp): Promise<void> {
    const holds = () =>
      typeof text === "string" ? this.shown.includes(text) : text.test(this.shown);
    await until(`shown: ${text}`, holds).catch((error) => {
      throw new Error(`${error.message}; but ${JSON.stringify(this.shown.slice(-2000))}`);
    });
  }

  async ended(): Promise<void> {
    await until("the terminal closes the socket", () => this.closed !== undefined);
  }

  async frame(type: FromTerminal["type"]): Promise<FromTerminal> {
    await until(`frame ${type}`, () => this.frames.some((frame) => frame.type === type));
    return this.frames.find((frame) => frame.type === type) as FromTerminal;
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#isCut) return;
    if (isBinary) {
      this.#show(data as Buffer);
      return;
    }
    const frame = JSON.parse(String(data)) as FromTerminal;
    this.frames.push(frame);
    if (frame.type === "ready" || frame.type === "screen") this.offset = frame.offset;
    if (frame.type === "screen") this.#snapshotIsNext = true;
  }

  #show(bytes: Buffer): void {
    if (this.#snapshotIsNext) {
      this.#snapshotIsNext = false;
      this.snapshots.push(bytes);
      return;
    }
    this.offset += bytes.length;
    if (this.take !== undefined) this.take(bytes, this);
    else this.output.push(bytes);
    const { framed, silent } = this.#options;
    if (framed && !silent && !this.#isCut && this.offset - this.#acked >= ackEveryBytes) this.ack();
  }
}
