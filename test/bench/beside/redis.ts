/**
 * Owns a lock made of a list in one Redis on this machine: who takes its one element has it, who waits is served in order.
 * The append-only file is synced at each change. It has no expiry and no fence: less than a lease is.
 */
import { connect, type Socket } from "node:net";
import type { Bench } from "../figure.ts";
import { type Lock, lockWaiters } from "./lock.ts";
import { freePort, startProgram } from "./program.ts";

const list = "berth-bench";

/** One call at a time, as each client here has. */
class Connection {
  readonly #socket: Socket;
  #text = "";
  #told: ((reply: string) => void) | undefined;
  #failed: ((error: Error) => void) | undefined;

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
    socket.on("data", (text: string) => this.#hear(text));
    socket.on("close", () => this.#failed?.(new Error("Redis closed the connection")));
  }

  call(...words: string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#told = resolve;
      this.#failed = reject;
      const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
      this.#socket.write(`*${words.length}\r\n${parts.join("")}`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #hear(text: string): void {
    this.#text += text;
    if (!isWhole(this.#text)) return;
    const reply = this.#text;
    this.#text = "";
    this.#failed = undefined;
    if (reply.startsWith("-")) throw new Error(`Redis: ${reply}`);
    this.#told?.(reply);
  }
}

/** Of the forms that are asked for here: a line, a text, a list of texts. */
function isWhole(text: string): boolean {
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
    const one = await Connection.open(port);
    connections.push(one);
    await one.call("PING");
  });
  bench.ends(async () => {
    for (const connection of connections) connection.close();
    return [];
  });
  while (connections.length <= lockWaiters + 1) connections.push(await Connection.open(port));
  const asking = await Connection.open(port);
  connections.push(asking);
  await asking.call("RPUSH", list, "free");
  const of = (client: number) => {
    const connection = connections[client];
    if (connection === undefined) throw new Error(`there is no client ${client}`);
    return connection;
  };
  return {
    name: "Redis",
    acquire: (client) => of(client).call("BLPOP", list, "60"),
    release: async (client) => {
      await of(client).call("RPUSH", list, "free");
    },
    async waiting() {
      const info = await asking.call("INFO", "clients");
      return Number(/^blocked_clients:(\d+)/m.exec(info)?.[1] ?? 0);
    },
  };
}
