/**
 * Owns the connections between clients and the server: they go through here, to a server that may be another one
 * after a restart, and are cut, silently or not, or refused.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

type Pair = { near: Socket; far: Socket };

export class Relay {
  readonly url: string;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  /** The server's ends of connections that it does not know to be dead. */
  readonly #orphans = new Set<Socket>();
  #port: number | undefined;
  #refuses = false;

  static async open(): Promise<Relay> {
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Relay(server);
  }

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (near) => this.#relay(near));
  }

  /** Undefined: there is none at the moment. */
  lead(url: string | undefined): void {
    this.#port = url === undefined ? undefined : Number(new URL(url).port);
  }

  refuse(refuses: boolean): void {
    this.#refuses = refuses;
  }

  /** Both ends hear of it. How many there were. */
  cut(share: () => boolean): number {
    const chosen = [...this.#pairs].filter(share);
    for (const pair of chosen) this.#end(pair);
    return chosen.length;
  }

  /** As a network that is gone: only the client hears of it. */
  cutSilently(share: () => boolean): number {
    const chosen = [...this.#pairs].filter(share);
    for (const pair of chosen) {
      const { near, far } = pair;
      this.#pairs.delete(pair);
      for (const socket of [near, far]) {
        socket.removeAllListeners();
        socket.unpipe();
        socket.on("error", () => {});
      }
      near.resetAndDestroy();
      far.pause();
      this.#orphans.add(far);
    }
    return chosen.length;
  }

  /** The server hears at last that nobody is there. */
  dropOrphans(): void {
    for (const orphan of this.#orphans) orphan.destroy();
    this.#orphans.clear();
  }

  async close(): Promise<void> {
    this.cut(() => true);
    this.dropOrphans();
    this.#server.close();
    await once(this.#server, "close");
  }

  #relay(near: Socket): void {
    if (this.#refuses || this.#port === undefined) {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ port: this.#port, host: "127.0.0.1", allowHalfOpen: true });
    const pair = { near, far };
    this.#pairs.add(pair);
    near.pipe(far);
    far.pipe(near);
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on("error", () => this.#end(pair));
      socket.on("close", () => {
        if (near.closed && far.closed) this.#pairs.delete(pair);
        else if (socket.readableAborted || !socket.readableEnded) this.#end(pair);
      });
    }
  }

  #end(pair: Pair): void {
    this.#pairs.delete(pair);
    for (const socket of [pair.near, pair.far]) {
      if (!socket.destroyed) socket.resetAndDestroy();
    }
  }
}
