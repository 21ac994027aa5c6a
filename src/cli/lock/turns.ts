/**
 * Owns whose turn it is among the commands that share one lease on this machine: one at a time, in the order of arrival.
 * Does not own the lease, nor waiting for a turn (take-turn.ts).
 *
 * Who has the lease serves a socket; a turn is a connection to it. So it ends with its process, whatever becomes of that;
 * one that ends without a word has left something behind, which is cleared away before the next one begins.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What runs in the sandbox for whose turn it is. */
export type TurnWork = { process: string } | { terminal: string };

/** From whoever has a turn, line by line: first the name, then the work, at last that it is over. */
export type TurnWord = { name: string } | { work: TurnWork } | { over: true };

/** To whoever waits: how many come before it, beside the one whose turn it is; then that it is his. */
export type TurnNews = { position: number; holder: string } | { go: true };

/** What the address of a socket holds on every system. */
const pathCharsMax = 100;
const wordCharsMax = 4096;

type Waiter = { socket: Socket; name: string; work: TurnWork[]; isOver: boolean };
type ClearAway = (work: TurnWork[]) => Promise<void>;

export class Turns implements Disposable {
  readonly path: string;
  readonly #folder: string;
  readonly #server: Server;
  /** The first one has it. */
  readonly #row: Waiter[] = [];
  readonly #all = new Set<Socket>();
  readonly #clearAway: ClearAway;

  static async open(clearAway: ClearAway): Promise<Turns> {
    const turns = new Turns(clearAway);
    await new Promise<void>((resolve, reject) => {
      turns.#server.once("error", reject).listen(turns.path, resolve);
    });
    return turns;
  }

  private constructor(clearAway: ClearAway) {
    this.#clearAway = clearAway;
    const near = join(tmpdir(), "berth-turns-");
    this.#folder = mkdtempSync(near.length > pathCharsMax / 2 ? "/tmp/berth-turns-" : near);
    this.path = join(this.#folder, "socket");
    this.#server = createServer((socket) => this.#welcome(socket));
  }

  /** Who still has a turn has none of the lease any more: what it left ends with that. */
  [Symbol.dispose](): void {
    this.#server.close();
    this.#row.length = 0;
    for (const socket of this.#all) socket.destroy();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #welcome(socket: Socket): void {
    this.#all.add(socket);
    const waiter: Waiter = { socket, name: "", work: [], isOver: false };
    let said = "";
    socket.setEncoding("utf8").on("data", (more: string) => {
      const lines = (said + more).split("\n");
      said = lines.pop() ?? "";
      if (said.length > wordCharsMax) socket.destroy();
      try {
        for (const line of lines) this.#hear(waiter, JSON.parse(line) as TurnWord);
      } catch {
        // It is none of our commands.
        socket.destroy();
      }
    });
    // Its close follows.
    socket.on("error", () => {});
    socket.once("close", () => void this.#leave(waiter));
  }

  #hear(waiter: Waiter, word: TurnWord): void {
    if ("work" in word) waiter.work.push(word.work);
    else if ("over" in word) waiter.isOver = true;
    else {
      waiter.name = word.name;
      this.#row.push(waiter);
      this.#tell(this.#row.length - 1);
    }
  }

  async #leave(waiter: Waiter): Promise<void> {
    this.#all.delete(waiter.socket);
    // Its turn lasts until nothing is left of it.
    if (this.#row[0] === waiter && !waiter.isOver) await this.#clearAway(waiter.work);
    const at = this.#row.indexOf(waiter);
    if (at < 0) return;
    this.#row.splice(at, 1);
    for (let later = at; later < this.#row.length; later += 1) this.#tell(later);
  }

  #tell(at: number): void {
    const holder = this.#row[0]?.name ?? "";
    const news: TurnNews = at === 0 ? { go: true } : { position: at - 1, holder };
    this.#row[at]?.socket.write(`${JSON.stringify(news)}\n`);
  }
}
