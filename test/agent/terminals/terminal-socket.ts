/**
 * Connects a viewer to a terminal in tests: a WebSocket written by hand, which can also stop reading. The agent needs a
 * header in the upgrade request, which the global WebSocket cannot send.
 */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import type { FromTerminal, ToTerminal } from "../../../src/protocol/internal/terminal-frames.ts";
import { terminalProtocol } from "../../../src/protocol/internal/terminal-frames.ts";
import type { Agent } from "../agent.ts";
import { until } from "../until.ts";

type Options = {
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
};

const opcode = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export class Viewer {
  readonly frames: FromTerminal[] = [];
  readonly headers: string;
  /** Output without snapshots; collected unless `take` is set. */
  output: Buffer[] = [];
  snapshots: Buffer[] = [];
  take: ((bytes: Buffer) => void) | undefined;
  /** Offset of the next byte of output. */
  offset = 0;
  closed: { code: number | undefined; reason: string } | undefined;
  pings = 0;
  readonly #socket: Socket;
  readonly #options: Options;
  #rest: Buffer = Buffer.alloc(0);
  #snapshotIsNext = false;
  #acked = 0;

  static async open(
    agent: Pick<Agent, "port" | "secret">,
    id: string,
    options: Options = {},
  ): Promise<Viewer> {
    const { framed = true, after, mode, generation, viewer } = options;
    const query = new URLSearchParams();
    if (after !== undefined) query.set("after", String(after));
    if (mode !== undefined) query.set("mode", mode);
    const protocol = framed ? [`Sec-WebSocket-Protocol: ${terminalProtocol}`] : [];
    const socket = connect(agent.port, "127.0.0.1");
    socket.setNoDelay(true);
    const lines = [
      `GET /v1/terminals/${id}/connect?${query} HTTP/1.1`,
      ...["Host: agent", "Upgrade: websocket", "Connection: Upgrade"],
      `Authorization: Bearer ${agent.secret}`,
      `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`,
      "Sec-WebSocket-Version: 13",
      ...(generation === undefined ? [] : [`Berth-Generation: ${generation}`]),
      ...(viewer === undefined ? [] : [`${agentHeaders.reader}: ${viewer}`]),
      ...protocol,
    ];
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    const { head, rest } = await headOf(socket);
    if (!head.startsWith("HTTP/1.1 101 ")) {
      socket.destroy();
      throw new Error(head);
    }
    return new Viewer(socket, head, rest, { ...options, framed });
  }

  private constructor(socket: Socket, headers: string, rest: Buffer, options: Options) {
    this.#socket = socket;
    this.headers = headers;
    this.#options = options;
    this.offset = options.after ?? 0;
    socket.on("data", (bytes: Buffer) => this.#hear(bytes));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.closed ??= { code: undefined, reason: "" };
    });
    this.#hear(rest);
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
    this.#send(opcode.binary, Buffer.from(text as string));
  }

  say(frame: ToTerminal | string): void {
    const text = typeof frame === "string" ? frame : JSON.stringify(frame);
    this.#send(opcode.text, Buffer.from(text));
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

  /** Ends like a lost connection. */
  cut(): void {
    this.#socket.destroy();
  }

  async close(): Promise<void> {
    this.#send(opcode.close, Buffer.from([1000 >> 8, 1000 & 255]));
    await until("the socket is closed", () => this.closed !== undefined);
    this.#socket.destroy();
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

  #send(code: number, payload: Buffer): void {
    const mask = randomBytes(4);
    const head =
      payload.length < 126
        ? Buffer.from([128 | code, 128 | payload.length])
        : Buffer.from([128 | code, 255, 0, 0, 0, 0, 0, 0, 0, 0]);
    if (payload.length >= 126) head.writeBigUInt64BE(BigInt(payload.length), 2);
    const masked = Buffer.from(payload);
    for (let n = 0; n < masked.length; n++) masked[n] = (masked[n] ?? 0) ^ (mask[n & 3] ?? 0);
    this.#socket.write(Buffer.concat([head, mask, masked]));
  }

  #hear(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const frame = frameAt(this.#rest);
      if (frame === undefined) return;
      this.#rest = this.#rest.subarray(frame.next);
      this.#receive(frame.code, frame.payload);
    }
  }

  #receive(code: number, payload: Buffer): void {
    switch (code) {
      case opcode.text:
        this.#learn(JSON.parse(payload.toString()) as FromTerminal);
        break;
      case opcode.binary:
        this.#show(Buffer.from(payload));
        break;
      case opcode.ping:
        this.pings++;
        if (this.#options.mute !== true) this.#send(opcode.pong, payload);
        break;
      case opcode.close:
        this.closed ??= {
          code: payload.length >= 2 ? payload.readUInt16BE(0) : undefined,
          reason: payload.subarray(2).toString(),
        };
        this.#socket.end();
        break;
    }
  }

  #learn(frame: FromTerminal): void {
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
    if (this.take !== undefined) this.take(bytes);
    else this.output.push(bytes);
    const { framed, silent } = this.#options;
    if (framed && !silent && this.offset - this.#acked >= 128 * 1024) this.ack();
  }
}

function frameAt(bytes: Buffer): { code: number; payload: Buffer; next: number } | undefined {
  if (bytes.length < 2) return undefined;
  const code = (bytes[0] ?? 0) & 15;
  let length = (bytes[1] ?? 0) & 127;
  let start = 2;
  if (length === 126) {
    if (bytes.length < 4) return undefined;
    length = bytes.readUInt16BE(2);
    start = 4;
  } else if (length === 127) {
    if (bytes.length < 10) return undefined;
    length = Number(bytes.readBigUInt64BE(2));
    start = 10;
  }
  if (bytes.length < start + length) return undefined;
  return { code, payload: bytes.subarray(start, start + length), next: start + length };
}

function headOf(socket: Socket): Promise<{ head: string; rest: Buffer }> {
  return new Promise((resolve, reject) => {
    let all = Buffer.alloc(0);
    const onData = (bytes: Buffer) => {
      all = Buffer.concat([all, bytes]);
      const end = all.indexOf("\r\n\r\n");
      if (end < 0) return;
      socket.off("data", onData);
      socket.off("close", onClose);
      resolve({ head: all.toString("latin1", 0, end), rest: all.subarray(end + 4) });
    };
    const onClose = () => reject(new Error(`closed before an answer: ${all}`));
    socket.on("data", onData);
    socket.once("error", reject);
    socket.once("close", onClose);
  });
}
