/**
 * Connects to a terminal of a real Berth by a hand-written WebSocket, because a test must be able to stop reading and to
 * cut the connection without a close frame.
 */
import { randomBytes } from "node:crypto";
import { get } from "node:http";
import type { Socket } from "node:net";
import type { FromTerminal, ToTerminal } from "../../../src/protocol/internal/terminal-frames.ts";
import { terminalProtocol } from "../../../src/protocol/internal/terminal-frames.ts";
import { until } from "../../until.ts";
import type { RunningServer } from "../server.ts";

const opcode = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const ackEveryBytes = 128 * 1024;
const bigBytes = 126;

type Options = {
  after?: number;
  framed?: boolean;
  /** Answers no ping: as one whose machine is gone. */
  mute?: boolean;
  /** Output alone, without pictures; the first of it may come with the answer. */
  take?: (bytes: Buffer, viewer: Viewer) => void;
};

export class Viewer {
  readonly frames: FromTerminal[] = [];
  /** The offset of the next byte of output. */
  offset: number;
  closed: number | undefined;
  readonly #socket: Socket;
  readonly #framed: boolean;
  readonly #mute: boolean;
  readonly #take: Required<Options>["take"];
  #rest: Buffer = Buffer.alloc(0);
  #pictureIsNext = false;
  #acked = 0;

  static async open(
    { url, key }: RunningServer,
    path: string,
    { after, framed = true, mute = false, take = () => {} }: Options = {},
  ): Promise<Viewer> {
    const query = after === undefined ? "" : `?after=${after}`;
    const headers = {
      ...{ authorization: `Bearer ${key}`, connection: "Upgrade", upgrade: "websocket" },
      "sec-websocket-key": randomBytes(16).toString("base64"),
      "sec-websocket-version": "13",
      ...(framed ? { "sec-websocket-protocol": terminalProtocol } : {}),
    };
    const call = get(`${url}/v1/sandboxes/${path}/connect${query}`, { headers });
    return new Promise((resolve, reject) => {
      call.once("error", reject);
      call.once("response", (answer) => {
        answer.resume();
        reject(new Error(`the socket was refused: ${answer.statusCode}`));
      });
      call.once("upgrade", (_, socket: Socket, rest: Buffer) =>
        resolve(new Viewer(socket, rest, { after: after ?? 0, framed, mute, take })),
      );
    });
  }

  private constructor(
    socket: Socket,
    rest: Buffer,
    { after, framed, mute, take }: Required<Options>,
  ) {
    this.#socket = socket;
    this.#framed = framed;
    this.#mute = mute;
    this.offset = after;
    this.#acked = after;
    this.#take = take;
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => this.#hear(bytes));
    socket.on("error", () => {});
    this.#hear(rest);
  }

  get bytesRead(): number {
    return this.#socket.bytesRead;
  }

  type(text: string): void {
    this.#send(opcode.binary, Buffer.from(text));
  }

  ack(): void {
    this.#acked = this.offset;
    const frame: ToTerminal = { type: "ack", offset: this.offset };
    this.#send(opcode.text, Buffer.from(JSON.stringify(frame)));
  }

  /** From now on it reads nothing. */
  standStill(): void {
    this.#socket.pause();
  }

  /** As a lost connection. */
  cut(): void {
    this.#socket.destroy();
  }

  get isCut(): boolean {
    return this.#socket.destroyed;
  }

  async close(): Promise<void> {
    this.#socket.resume();
    this.#send(opcode.close, Buffer.from([1000 >> 8, 1000 & 255]));
    await until("the socket is closed", () => this.closed !== undefined || this.isCut);
    this.#socket.destroy();
  }

  #send(code: number, payload: Buffer): void {
    if (payload.length >= bigBytes) throw new Error("a test types less at once");
    const mask = randomBytes(4);
    const masked = payload.map((byte, index) => byte ^ (mask[index & 3] ?? 0));
    const head = Buffer.from([128 | code, 128 | payload.length]);
    this.#socket.write(Buffer.concat([head, mask, masked]));
  }

  #hear(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (let frame = frameAt(this.#rest); frame !== undefined; frame = frameAt(this.#rest)) {
      this.#rest = this.#rest.subarray(frame.next);
      this.#receive(frame.code, frame.payload);
      // What comes after a cut was lost with the connection.
      if (this.isCut) return;
    }
  }

  #receive(code: number, payload: Buffer): void {
    if (code === opcode.text) {
      const frame = JSON.parse(payload.toString()) as FromTerminal;
      this.frames.push(frame);
      if (frame.type === "ready" || frame.type === "screen") this.offset = frame.offset;
      if (frame.type === "screen") this.#pictureIsNext = true;
    } else if (code === opcode.binary) {
      this.#show(payload);
    } else if (code === opcode.ping) {
      if (!this.#mute) this.#send(opcode.pong, payload);
    } else if (code === opcode.close) {
      this.closed = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      this.#socket.end();
    }
  }

  #show(bytes: Buffer): void {
    if (this.#pictureIsNext) {
      this.#pictureIsNext = false;
      return;
    }
    this.offset += bytes.length;
    this.#take(bytes, this);
    if (this.#framed && !this.isCut && this.offset - this.#acked >= ackEveryBytes) this.ack();
  }
}

function frameAt(bytes: Buffer): { code: number; payload: Buffer; next: number } | undefined {
  if (bytes.length < 2) return undefined;
  let length = (bytes[1] ?? 0) & 127;
  let offset = 2;
  if (length === 126) {
    if (bytes.length < 4) return undefined;
    length = bytes.readUInt16BE(2);
    offset = 4;
  } else if (length === 127) {
    if (bytes.length < 10) return undefined;
    length = Number(bytes.readBigUInt64BE(2));
    offset = 10;
  }
  if (bytes.length < offset + length) return undefined;
  return {
    code: (bytes[0] ?? 0) & 15,
    payload: bytes.subarray(offset, offset + length),
    next: offset + length,
  };
}
