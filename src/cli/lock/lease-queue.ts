/**
 * A queue for the commands that share one lease on this machine: one runs at a time, in order of arrival.
 * The process that holds the lease serves a socket; each command is a connection to it, so its turn ends with its
 * process. If one ends without saying so, what it left running is ended before the next one starts.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What a command has running in the sandbox. */
export type LeasedWork = { process: string } | { terminal: string };

/** From a command, one JSON document per line: first its name, then its work, finally that it is done. */
export type QueueMessage = { name: string } | { work: LeasedWork } | { over: true };

/** To a waiting command: its queue position and the current command, then `go`. */
export type QueueUpdate = { position: number; holder: string } | { go: true };

/** The length of a socket path that every system supports. */
const pathCharsMax = 100;
const messageCharsMax = 4096;

/** Reads one JSON document per line. What sends something else is not one of our commands. */
export function readMessages<Message>(socket: Socket, handle: (message: Message) => void): void {
  let buffered = "";
  socket.setEncoding("utf8").on("data", (more: string) => {
    const lines = (buffered + more).split("\n");
    buffered = lines.pop() ?? "";
    if (buffered.length > messageCharsMax) socket.destroy();
    try {
      for (const line of lines) handle(JSON.parse(line));
    } catch {
      socket.destroy();
    }
  });
  // `close` follows.
  socket.on("error", () => {});
}

type QueuedCommand = { socket: Socket; name: string; work: LeasedWork[]; isDone: boolean };
type EndOrphans = (work: LeasedWork[]) => Promise<void>;

export class LeaseQueue implements Disposable {
  readonly path: string;
  readonly #folder: string;
  readonly #server: Server;
  /** The first one has its turn. */
  readonly #queue: QueuedCommand[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #endOrphans: EndOrphans;

  static async open(endOrphans: EndOrphans): Promise<LeaseQueue> {
    const queue = new LeaseQueue(endOrphans);
    await new Promise<void>((resolve, reject) => {
      queue.#server.once("error", reject).listen(queue.path, resolve);
    });
    return queue;
  }

  private constructor(endOrphans: EndOrphans) {
    this.#endOrphans = endOrphans;
    const prefix = join(tmpdir(), "berth-turns-");
    this.#folder = mkdtempSync(prefix.length > pathCharsMax / 2 ? "/tmp/berth-turns-" : prefix);
    this.path = join(this.#folder, "socket");
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** A command that still has its turn loses the lease: what it left ends with that. */
  [Symbol.dispose](): void {
    this.#server.close();
    this.#queue.length = 0;
    for (const socket of this.#sockets) socket.destroy();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    const command: QueuedCommand = { socket, name: "", work: [], isDone: false };
    readMessages<QueueMessage>(socket, (message) => this.#handleMessage(command, message));
    socket.once("close", () => void this.#leave(command));
  }

  #handleMessage(command: QueuedCommand, message: QueueMessage): void {
    if ("work" in message) command.work.push(message.work);
    else if ("over" in message) command.isDone = true;
    else {
      command.name = message.name;
      this.#queue.push(command);
      this.#notify(this.#queue.length - 1);
    }
  }

  async #leave(command: QueuedCommand): Promise<void> {
    this.#sockets.delete(command.socket);
    // Its turn lasts until its work has ended.
    if (this.#queue[0] === command && !command.isDone) await this.#endOrphans(command.work);
    const index = this.#queue.indexOf(command);
    if (index < 0) return;
    this.#queue.splice(index, 1);
    for (let next = index; next < this.#queue.length; next += 1) this.#notify(next);
  }

  #notify(index: number): void {
    const holder = this.#queue[0]?.name ?? "";
    const update: QueueUpdate = index === 0 ? { go: true } : { position: index - 1, holder };
    this.#queue[index]?.socket.write(`${JSON.stringify(update)}\n`);
  }
}
