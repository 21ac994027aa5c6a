/** A WebSocket of a test, which records its frames, its output and its end. */
import { expect } from "vitest";
import { eventually } from "../contract/sandbox/world.ts";

type Frame = { type: string } & Record<string, unknown>;

export class FrameSocket {
  readonly frames: Frame[] = [];
  readonly pongs: string[] = [];
  readonly socket: WebSocket;
  /** The bytes of a terminal. */
  output = "";
  closed: { code: number; reason: string } | undefined;

  constructor({ status, webSocket }: Response) {
    expect(status).toBe(101);
    this.socket = webSocket as WebSocket;
    this.socket.accept();
    this.socket.binaryType = "arraybuffer";
    this.socket.addEventListener("message", ({ data }) => {
      if (data === "pong") this.pongs.push(data);
      else if (typeof data === "string") this.frames.push(JSON.parse(data));
      else this.output += new TextDecoder().decode(data as ArrayBuffer);
    });
    this.socket.addEventListener("close", ({ code, reason }) => {
      this.closed = { code, reason };
    });
  }

  types(): string[] {
    return this.frames.map(({ type }) => type);
  }

  async next(type: string): Promise<Frame> {
    await eventually(async () => expect(this.types()).toContain(type));
    return this.frames.find((frame) => frame.type === type) as Frame;
  }

  async shows(text: string): Promise<void> {
    await eventually(async () => expect(this.output).toContain(text));
  }

  close(): void {
    this.socket.close(1000, "done");
  }

  async ends(): Promise<void> {
    await eventually(async () => expect(this.closed).toBeDefined());
  }
}
