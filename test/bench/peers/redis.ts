/**
 * A lock made of a list in a Redis on this machine: a client that pops its only element holds the lock, and waiting
 * clients are served in order. The append-only file is synced on each change. It has no expiry and no fence, so it
 * does less than a lease.
 */
import { connect, type Socket } from "node:net";
import type { Bench } from "../figure.ts";
import { type Lock, lockWaiters } from "../lock.ts";
import { freePort, startProgram } from "./program.ts";

const list = "berth-bench";

/** A connection with one call at a time. */
class Connection {
  readonly #socket: Socket;
  #text = "";
  #resolve: ((reply: string) => void) | undefined;
  #reject: ((error: Error) => void) | undefined;

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => resolve(new Connection(socket)));
    });
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => this.#receive(text));
    socket.on("close", () => this.#reject?.(new Error("Redis closed the connection")));
  }

  call(...words: string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
      this.#socket.write(`*${words.length}\r\n${parts.join("")}`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(text: string): void {
    this.#text += text;
    if (!isComplete(this.#text)) return;
    const reply = this.#text;
    this.#text = "";
    this.#reject = undefined;
    if (reply.startsWith("-")) throw new Error(`Redis: ${reply}`);
    this.#resolve?.(reply);
  }
}

/** Whether the reply is complete: a line, a bulk string, or a list of bulk strings. */
function isComplete(text: string): boolean {
  const lines = text.split("\r\n");
  const [head = ""] = lines;
  if (!text.endsWith("\r\n")) return false;
  if (head.startsWith("*")) return lines.length >= 2 * Number(head.slice(1)) + 2;
  if (head.startsWith("$")) return text.length >= head.length + 2 + Number(head.slice(1)) + 2;
  return true;
}

export async function redisLock(bench: Bench, program: string): Promise<Lock> {
  const port = await freePort();
  const args = [
    ...["--port", String(port), "--bind", "127.0.0.1", "--dir", bench.folder()],
    ...["--appendonly", "yes", "--appendfsync", "always", "--save", ""],
  ];
  const connections: Connection[] = [];
  await startProgram(bench, program, args, async () => {
    const first = await Connection.open(port);
    connections.push(first);
    await first.call("PING");
  });
  bench.closes(() => {
    for (const connection of connections) connection.close();
  });
  while (connections.length <= lockWaiters + 1) connections.push(await Connection.open(port));
  const control = await Connection.open(port);
  connections.push(control);
  await control.call("RPUSH", list, "free");
  const connectionOf = (client: number) => {
    const connection = connections[client];
    if (connection === undefined) throw new Error(`there is no client ${client}`);
    return connection;
  };
  return {
    name: "Redis",
    acquire: (client) => connectionOf(client).call("BLPOP", list, "60"),
    release: async (client) => {
      await connectionOf(client).call("RPUSH", list, "free");
    },
    async waiting() {
      const info = await control.call("INFO", "clients");
      return Number(/^blocked_clients:(\d+)/m.exec(info)?.[1] ?? 0);
    },
  };
}
