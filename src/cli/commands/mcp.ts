/** `berth mcp`: serves the Model Context Protocol over standard input and output, by the server's `/mcp`. */
import { createInterface } from "node:readline";
import { command } from "../command.ts";
import type { Server } from "../server/find-server.ts";

type Message = { id?: string | number; method?: string; params?: { requestId?: string | number } };
/** How long the end of this process waits for the end of its commands. */
const cancelMs = 5_000;

type Write = (line: string) => void;

export const mcpCommand = command({
  name: "mcp",
  summary: "Give an agent its sandboxes, by the Model Context Protocol",
  group: "Server",
  about:
    "An agent's client starts it and talks to it over standard input and output. With BERTH_KEY set to the token of a sandbox the agent gets that one alone.",
  examples: [["As the command of an agent's server", "berth mcp"]],
  ownSignals: true,
  async run({ server, stdin, stdout, interrupts }) {
    const relay = new Relay(server, (line) => void stdout.write(`${line}\n`));
    const lines = createInterface({ input: stdin });
    interrupts.requested.addEventListener("abort", () => lines.close());
    for await (const line of lines) relay.pass(line);
    // The client has left.
    await relay.cancelAll();
    return 0;
  },
});

/** Passes messages on to the server. The server's session tells it which call a cancellation is for. */
class Relay {
  readonly #server: Server;
  readonly #write: Write;
  readonly #calls = new Map<string | number, AbortController>();
  #session: string | undefined;

  constructor(server: Server, write: Write) {
    this.#server = server;
    this.#write = write;
  }

  pass(line: string): void {
    const message = parse(line);
    if (message === undefined) return;
    const { id, method, params } = message;
    if (id !== undefined) void this.#call(id, line);
    else if (method === "notifications/cancelled") void this.#cancel(params?.requestId ?? "");
    // The server has no use for other notifications.
  }

  async cancelAll(): Promise<void> {
    await Promise.all(Array.from(this.#calls.keys(), (id) => this.#cancel(id)));
  }

  /** Tells the server before the stream ends: it would notice that a reader has gone much later. */
  async #cancel(requestId: string | number): Promise<void> {
    const call = this.#calls.get(requestId);
    // A cancelled call has no answer.
    this.#calls.delete(requestId);
    const notification = { method: "notifications/cancelled", params: { requestId } };
    const signal = AbortSignal.timeout(cancelMs);
    await this.#post(JSON.stringify({ jsonrpc: "2.0", ...notification }), signal).catch(() => {});
    call?.abort();
  }

  async #call(id: string | number, line: string): Promise<void> {
    const abort = new AbortController();
    this.#calls.set(id, abort);
    const write: Write = (answer) => {
      if (this.#calls.get(id) === abort) this.#write(answer);
    };
    try {
      const response = await this.#post(line, abort.signal);
      this.#session = response.headers.get("mcp-session-id") ?? this.#session;
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      if (isStream === true && response.body !== null) await passEvents(response.body, write);
      else write(JSON.stringify({ ...((await response.json()) as object), id }));
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      const error = {
        code: -32603,
        message: `The server at ${this.#server.url} did not answer: ${why}`,
      };
      write(JSON.stringify({ jsonrpc: "2.0", id, error }));
    } finally {
      this.#calls.delete(id);
    }
  }

  #post(body: string, signal: AbortSignal): Promise<Response> {
    const { url, key } = this.#server;
    return fetch(new URL("/mcp", url), {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
      },
      body,
      signal,
    });
  }
}

function parse(line: string): Message | undefined {
  try {
    const message = JSON.parse(line) as unknown;
    return typeof message === "object" && message !== null ? message : undefined;
  } catch {
    return undefined;
  }
}

async function passEvents(body: ReadableStream<Uint8Array>, write: Write): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ")) write(line.slice(6));
  }
}
