/**
 * A relay between a client and a server whose connections a test cuts, so that both ends notice it, or only the client.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

type Pair = { clientSide: Socket; serverSide: Socket };

export class CutProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  /** Sockets whose connection is dead without their knowledge. */
  readonly #orphans = new Set<Socket>();
  cuts = 0;
  refused = 0;
  /** Bytes that a stalled relay received and did not forward. */
  swallowedBytes = 0;
  #refuses = false;
  #stalls = false;
  /** Resolves when the present silence is over. */
  #silence: Promise<void> | undefined;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async to(url: string): Promise<CutProxy> {
    const { hostname, port } = new URL(url);
    const server = createServer((clientSide) => proxy.#relay(clientSide, hostname, Number(port)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const proxy = new CutProxy(server);
    return proxy;
  }

  get open(): number {
    return this.#pairs.size;
  }

  /** Cuts all connections; both ends notice. */
  cut(by: "FIN" | "RST" = "FIN"): void {
    for (const { clientSide, serverSide } of this.#pairs) {
      this.cuts += 1;
      for (const side of [clientSide, serverSide]) {
        if (by === "RST") side.resetAndDestroy();
        else side.destroy();
      }
    }
    this.#pairs.clear();
  }

  /** Cuts all connections like a lost network; only the client notices. */
  cutSilently(): void {
    for (const { clientSide, serverSide } of this.#pairs) {
      this.cuts += 1;
      clientSide.removeAllListeners();
      serverSide.removeAllListeners();
      serverSide.on("error", () => {});
      clientSide.on("error", () => {});
      clientSide.destroy();
      serverSide.pause();
      this.#orphans.add(serverSide);
    }
    this.#pairs.clear();
  }

  /** Refuses new connections, until called again. */
  refuse(refuses: boolean): void {
    this.#refuses = refuses;
  }

  /** Stalls like a network that takes everything and delivers nothing; neither end notices. */
  stall(): void {
    this.#stalls = true;
    for (const { clientSide, serverSide } of this.#pairs) {
      clientSide.unpipe(serverSide);
      // The client must not see the end either.
      serverSide.removeAllListeners();
      serverSide.on("error", () => {});
      this.#swallow(clientSide);
    }
  }

  /** Delivers nothing until `over`, then everything, as a network does that comes back. */
  silence(over: Promise<void>): void {
    this.#silence = over;
    for (const { clientSide, serverSide } of this.#pairs) {
      clientSide.unpipe(serverSide);
      serverSide.unpipe(clientSide);
      over.then(() => join(clientSide, serverSide));
    }
    over.then(() => {
      this.#silence = undefined;
    });
  }

  #swallow(clientSide: Socket): void {
    clientSide.on("error", () => {});
    clientSide.on("data", ({ byteLength }) => {
      this.swallowedBytes += byteLength;
    });
  }

  #relay(clientSide: Socket, host: string, port: number): void {
    if (this.#refuses) {
      this.refused += 1;
      clientSide.destroy();
      return;
    }
    if (this.#stalls) {
      this.#orphans.add(clientSide);
      this.#swallow(clientSide);
      return;
    }
    const serverSide = connect(port, host);
    const pair = { clientSide, serverSide };
    this.#pairs.add(pair);
    if (this.#silence === undefined) join(clientSide, serverSide);
    else this.#silence.then(() => join(clientSide, serverSide));
    const end = () => {
      clientSide.destroy();
      serverSide.destroy();
      this.#pairs.delete(pair);
    };
    for (const socket of [clientSide, serverSide]) {
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", end);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    for (const orphan of this.#orphans) orphan.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}

function join(clientSide: Socket, serverSide: Socket): void {
  clientSide.pipe(serverSide);
  serverSide.pipe(clientSide);
}
