/**
 * Owns a relay between a client and a server whose connections a test cuts, with a word to the server or without.
 * Does not own what is sent through it.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

type Pair = { near: Socket; far: Socket };

export class CutProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  /** Ends of connections of which they do not know that they are dead. */
  readonly #orphans = new Set<Socket>();
  cuts = 0;
  /** Of a stalled relay: what came and went nowhere. */
  swallowedBytes = 0;
  #refuses = false;
  #stalls = false;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async to(url: string): Promise<CutProxy> {
    const { hostname, port } = new URL(url);
    const server = createServer((near) => proxy.#relay(near, hostname, Number(port)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const proxy = new CutProxy(server);
    return proxy;
  }

  get open(): number {
    return this.#pairs.size;
  }

  /** Both ends hear of it. */
  cut(): void {
    for (const { near, far } of this.#pairs) {
      this.cuts += 1;
      near.destroy();
      far.destroy();
    }
    this.#pairs.clear();
  }

  /** As a network that is gone: only the client hears of it. */
  cutSilently(): void {
    for (const { near, far } of this.#pairs) {
      this.cuts += 1;
      near.removeAllListeners();
      far.removeAllListeners();
      far.on("error", () => {});
      near.on("error", () => {});
      near.destroy();
      far.pause();
      this.#orphans.add(far);
    }
    this.#pairs.clear();
  }

  /** New connections, until it is told otherwise. */
  refuse(refuses: boolean): void {
    this.#refuses = refuses;
  }

  /** As a network that takes everything and brings nothing: neither end hears of it. */
  stall(): void {
    this.#stalls = true;
    for (const { near, far } of this.#pairs) {
      near.unpipe(far);
      // Its end is not to be heard of either.
      far.removeAllListeners();
      far.on("error", () => {});
      this.#swallow(near);
    }
  }

  #swallow(near: Socket): void {
    near.on("error", () => {});
    near.on("data", ({ byteLength }) => {
      this.swallowedBytes += byteLength;
    });
  }

  #relay(near: Socket, host: string, port: number): void {
    if (this.#refuses) {
      near.destroy();
      return;
    }
    if (this.#stalls) {
      this.#orphans.add(near);
      this.#swallow(near);
      return;
    }
    const far = connect(port, host);
    const pair = { near, far };
    this.#pairs.add(pair);
    near.pipe(far);
    far.pipe(near);
    const end = () => {
      near.destroy();
      far.destroy();
      this.#pairs.delete(pair);
    };
    for (const socket of [near, far]) {
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
