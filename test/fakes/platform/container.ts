/** `ctx.container` of one instance of an object, over the machine that outlives it. See machine.ts for the sources. */
import type { Fetch, PlatformMachine } from "./machine.ts";

/** [limits]: what a container can be started with. */
const instances = ["lite", "basic", "standard-1", "standard-2", "standard-3", "standard-4"];
/** Linux refuses one string of 128 KiB (MAX_ARG_STRLEN). */
const envStringBytesMax = 128 * 1024 - 1;
/** [life]: the longest inactivity timeout. What a longer one does is not documented; here it is refused. */
const inactivityMaxMs = 6 * 60 * 60_000;

type StartOptions = {
  image?: string;
  containerSnapshot?: { id: string };
  instance?: string | { vcpu: number; memoryMib: number; diskMb: number };
  env?: Record<string, string>;
  enableInternet?: boolean;
  labels?: Record<string, string>;
};

export class PlatformContainer<Tree> {
  readonly images = { default: "image" };
  /** Dies with the instance of the object. [life] */
  inactivityTimeoutMs: number | undefined;
  lastStart: StartOptions | undefined;
  readonly #machine: PlatformMachine<Tree>;

  constructor(machine: PlatformMachine<Tree>) {
    this.#machine = machine;
  }

  /** True from the call of `start()` on, whatever has come up. [src] */
  get running(): boolean {
    return this.#machine.run !== undefined;
  }

  start(options: StartOptions): void {
    if (this.running) throw new Error("start() cannot be called on a container that runs");
    refuseEnvironment(options.env ?? {});
    refuseInstance(options.instance);
    refuseLabels(options.labels ?? {});
    const { newTree, copyTree } = this.#machine.options;
    const saved = this.#machine.snapshots.get(options.containerSnapshot?.id ?? "");
    this.lastStart = options;
    this.#machine.labels = options.labels ?? {};
    const tree = saved === undefined ? newTree() : copyTree(saved);
    this.#machine.start(options.env ?? {}, options.enableInternet ?? false, tree);
    const { run } = this.#machine;
    if (options.containerSnapshot !== undefined && saved === undefined && run !== undefined) {
      this.#machine.end(run, "no such snapshot", new Error("the snapshot does not exist"));
    }
  }

  monitor(): Promise<void> {
    const { run } = this.#machine;
    if (run === undefined) return Promise.reject(new Error("the container is not running"));
    return run.ended.promise;
  }

  async destroy(): Promise<void> {
    const { run } = this.#machine;
    if (run !== undefined) this.#machine.end(run, "destroyed", new Error("destroyed"));
  }

  /** Reaches the first process, which is the agent. [api] */
  signal(signal: number): void {
    if (signal === 15) this.#machine.run?.program?.terminate();
    else if (signal === 9) this.#machine.loseHost();
  }

  async setInactivityTimeout(ms: number | bigint): Promise<void> {
    if (!this.running) throw new Error("the container is not running");
    if (Number(ms) <= 0 || Number(ms) > inactivityMaxMs) {
      throw new TypeError(`an inactivity timeout of ${ms} ms is out of range`);
    }
    this.inactivityTimeoutMs = Number(ms);
  }

  getTcpPort(_port: number): {
    fetch: (input: Request | string, init?: RequestInit) => Promise<Response>;
  } {
    return { fetch: (input, init) => this.#fetch(new Request(input, init)) };
  }

  async interceptOutboundHttp(host: string, to: { fetch: Fetch }): Promise<void> {
    this.#intercept(host, to);
  }

  async interceptOutboundHttps(host: string, to: { fetch: Fetch }): Promise<void> {
    this.#intercept(host, to);
  }

  async interceptAllOutboundHttp(to: { fetch: Fetch }): Promise<void> {
    this.#intercept("*", to);
  }

  async inspect(): Promise<{ labels: Record<string, string>; image: string } | null> {
    if (!this.running) return null;
    return { labels: this.#machine.labels, image: "image" };
  }

  async snapshotContainer(_options?: { name?: string }): Promise<{ id: string; size: number }> {
    return { id: await this.#machine.save(), size: 1 };
  }

  /** Interceptions hold for the running container, or for the next one. */
  #intercept(host: string, to: { fetch: Fetch }): void {
    const { run, intercepts } = this.#machine;
    (run?.intercepts ?? intercepts).set(host, (request) => to.fetch(request));
  }

  /** Before the program listens a request hangs, until its caller gives up. [src] */
  #fetch(request: Request): Promise<Response> {
    const { run } = this.#machine;
    if (run === undefined) return Promise.reject(new Error("the container is not running"));
    if (run.program !== undefined) return run.program.fetch(request);
    return new Promise((_resolve, reject) => {
      request.signal.addEventListener("abort", () => reject(new Error("aborted")));
    });
  }
}

function refuseEnvironment(env: Record<string, string>): void {
  for (const [name, value] of Object.entries(env)) {
    const bytes = new TextEncoder().encode(`${name}=${value}`).length;
    if (bytes > envStringBytesMax) throw new TypeError(`env ${name} has ${bytes} bytes`);
  }
}

/** [limits]: 1 to 4 vCPU, at least 3 GiB for each, at most 12 GiB and 20 GB. */
function refuseInstance(instance: StartOptions["instance"]): void {
  if (instance === undefined) return;
  if (typeof instance === "string") {
    if (!instances.includes(instance)) throw new TypeError(`no instance type ${instance}`);
    return;
  }
  const { vcpu, memoryMib, diskMb } = instance;
  const isValid =
    vcpu >= 1 &&
    vcpu <= 4 &&
    memoryMib >= 3072 * vcpu &&
    memoryMib <= 12_288 &&
    diskMb >= 1 &&
    diskMb <= 20_000;
  if (!isValid) throw new TypeError(`resources ${vcpu}/${memoryMib}/${diskMb} are out of range`);
}

/** At most 10, of 16 and 64 bytes. [api] */
function refuseLabels(labels: Record<string, string>): void {
  const entries = Object.entries(labels);
  const isValid = entries.every(([name, value]) => name.length <= 16 && value.length <= 64);
  if (entries.length > 10 || !isValid) throw new TypeError("labels are out of range");
}
