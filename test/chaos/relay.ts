/**
 * A TCP relay between clients and server with a constant address: it follows the server across restarts, and cuts
 * connections, silently or not, or refuses them.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

type Pair = { client: Socket; server: Socket };

export class Relay {
  readonly url: string;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  /** Connections that the server does not know to be closed. */
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
    server.on("connection", (client) => this.#relay(client));
  }

  /** Sets the server's address; undefined while there is none. */
  setServer(url: string | undefined): void {
    this.#port = url === undefined ? undefined : Number(new URL(url).port);
  }

  refuse(refuses: boolean): void {
    this.#refuses = refuses;
  }

  /** Cuts connections so that both ends notice. Returns their number. */
  cut(share: () => boolean): number {
    const chosen = [...this.#pairs].filter(share);
    for (const pair of chosen) this.#end(pair);
    return chosen.length;
  }

  /** Cuts connections like a lost network: only the client notices. */
  cutSilently(share: () => boolean): number {
    const chosen = [...this.#pairs].filter(share);
    for (const pair of chosen) {
      const { client, server } = pair;
      this.#pairs.delete(pair);
      for (const socket of [client, server]) {
        socket.removeAllListeners();
        socket.unpipe();
        socket.on("error", () => {});
      }
      client.resetAndDestroy();
      server.pause();
      this.#orphans.add(server);
    }
    return chosen.length;
  }

  /** Lets the server notice the silent cuts. */
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

  #relay(client: Socket): void {
    if (this.#refuses || this.#port === undefined) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ port: this.#port, host: "127.0.0.1", allowHalfOpen: true });
    const pair = { client, server };
    this.#pairs.add(pair);
    client.pipe(server);
    server.pipe(client);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on("error", () => this.#end(pair));
      socket.on("close", () => {
        if (client.closed && server.closed) this.#pairs.delete(pair);
        else if (socket.readableAborted || !socket.readableEnded) this.#end(pair);
      });
    }
  }

  #end(pair: Pair): void {
    this.#pairs.delete(pair);
    for (const socket of [pair.client, pair.server]) {
      if (!socket.destroyed) socket.resetAndDestroy();
    }
  }
}
