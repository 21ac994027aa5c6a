/** Starts and follows terminals: their raw output from an offset on, over a WebSocket to the agent. */
import { type FromTerminal, terminalProtocol } from "../../protocol/internal/terminal-frames.ts";
import type { Terminal } from "../../protocol/terminal.ts";
import { ConnectError } from "./connect-framing.ts";
import type { DaemonCall } from "./daemon.ts";
import { sizeOf } from "./process-input.ts";
import { type Config, endOf, event, notStarted } from "./process-streams.ts";
import { type Item, keepaliveMs, streamMessages, timeoutMs } from "./streams.ts";

export async function startTerminal(
  call: DaemonCall,
  config: Config,
  pty: { size?: unknown },
): Promise<ReadableStream<Uint8Array>> {
  const { calls, sandbox } = call;
  const body = {
    argv: [config.cmd, ...config.args],
    cwd: config.cwd,
    env: config.envs,
    ...sizeOf(pty),
  };
  const path = `/v1/sandboxes/${sandbox}/terminals`;
  const terminal = await calls.json<Terminal>("POST", path, body).catch((thrown: unknown) => {
    throw notStarted(thrown, config);
  });
  return followTerminal(call, terminal, 0, { endsAtLimit: true });
}

/** `endsAtLimit`: the time of the call is the life of the terminal, not only of the stream. */
export async function followTerminal(
  { calls, sandbox, headers }: DaemonCall,
  { id, pid }: Terminal,
  after: number,
  { endsAtLimit = false } = {},
): Promise<ReadableStream<Uint8Array>> {
  const path = `/v1/sandboxes/${sandbox}/terminals/${id}`;
  const response = await calls.send(`${path}/connect?mode=viewer&after=${after}`, {
    headers: { upgrade: "websocket", "sec-websocket-protocol": terminalProtocol },
  });
  const socket = response.webSocket;
  if (socket === null) throw new ConnectError("internal", "the terminal opened no socket");
  const source = new TerminalSource(socket, pid, keepaliveMs(headers));
  const limit = timeoutMs(headers);
  if (limit !== undefined) {
    source.endAfter(limit, () => {
      if (endsAtLimit) calls.json("DELETE", path).catch(() => undefined);
    });
  }
  return streamMessages(source);
}

class TerminalSource {
  readonly #socket: WebSocket;
  readonly #keepaliveMs: number;
  /** What has come and was not taken. The agent stops at its window until it is acknowledged. */
  readonly #items: Item[];
  #wake: () => void = () => {};
  #offset = 0;
  #isScreen = false;
  #isCut = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(socket: WebSocket, pid: number, keepalive: number) {
    this.#socket = socket;
    this.#keepaliveMs = keepalive;
    this.#items = [event({ start: { pid } })];
    // By default the platform delivers bytes as a Blob, which is read later than the frames after it.
    socket.binaryType = "arraybuffer";
    socket.accept();
    socket.addEventListener("message", ({ data }) => this.#take(data as string | ArrayBuffer));
    socket.addEventListener("close", () => this.#cut());
    socket.addEventListener("error", () => this.#cut());
  }

  endAfter(ms: number, onEnd: () => void): void {
    this.#timer = setTimeout(() => {
      const message = "the time of the call is over";
      this.#add({ end: new ConnectError("deadline_exceeded", message) });
      onEnd();
    }, ms);
  }

  async next(): Promise<Item> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) {
        if ("end" in item) this.cancel();
        else this.#acknowledge();
        return item;
      }
      if (this.#isCut) throw new Error("the terminal was cut off");
      if (!(await this.#news())) return event({ keepalive: {} });
    }
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#isCut = true;
    try {
      this.#socket.close(1000);
    } catch {
      // It is closed already.
    }
    this.#wake();
  }

  #take(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      if (this.#isScreen) {
        this.#isScreen = false;
        return;
      }
      this.#offset += data.byteLength;
      this.#add(event({ data: { pty: Buffer.from(data).toString("base64") } }));
      return;
    }
    const frame = JSON.parse(data) as FromTerminal;
    if (frame.type === "screen") this.#isScreen = true;
    if ("offset" in frame) this.#offset = frame.offset;
    if (frame.type !== "exit") return;
    this.#add(event({ end: endOf(frame) }));
    this.#add({ end: undefined });
  }

  #acknowledge(): void {
    if (this.#items.length > 0 || this.#isCut) return;
    this.#socket.send(JSON.stringify({ type: "ack", offset: this.#offset }));
  }

  #add(item: Item): void {
    this.#items.push(item);
    this.#wake();
  }

  #cut(): void {
    this.#isCut = true;
    this.#wake();
  }

  /** False: nothing came in the time after which a sign of life is due. */
  #news(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), this.#keepaliveMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
