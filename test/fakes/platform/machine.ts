/**
 * A platform for one object that is as forgetful and as slow as Cloudflare's is documented to be, and never kinder. It
 * keeps what outlives an instance of the object: the running machine, its files and the snapshots. See container.ts for
 * what one instance of the object sees as `ctx.container`.
 *
 * Sources, below developers.cloudflare.com: [life] /containers/concepts/lifetime, [api] /durable-objects/api/container,
 * [save] /containers/guides/save-a-sandbox, [limits] /containers/platform/limits, [arch] /containers/concepts/architecture,
 * [src] workerd, src/workerd/api/container.c++.
 */
import { PlatformContainer } from "./container.ts";

export type PlatformClock = {
  after: (ms: number, what: string, ring: () => void) => () => void;
};

/** What runs in a container and listens on its port. */
export type Program = {
  fetch: (request: Request) => Promise<Response>;
  /** SIGTERM to its first process. */
  terminate: () => void;
  /** The machine is switched off. */
  end: () => void;
};

export type ProgramStart<Tree> = {
  env: Record<string, string>;
  tree: Tree;
  /** Sends a request out of the container. */
  sendOut: (request: Request) => Promise<Response>;
  /** The program exits by itself. */
  exit: (code: number) => void;
};

export type PlatformOptions<Tree> = {
  clock: PlatformClock;
  /** The files of the image. */
  newTree: () => Tree;
  copyTree: (tree: Tree) => Tree;
  /** A tree that was read while it changed from one to the other. */
  mixTrees: (before: Tree, after: Tree) => Tree;
  boot: (start: ProgramStart<Tree>) => Program;
};

export type Fetch = (request: Request) => Promise<Response>;

/** One start of a container, until it ends. */
export type Run<Tree> = {
  tree: Tree;
  internet: boolean;
  /** By host; `*` for every host. [life]: they end with the container. */
  intercepts: Map<string, Fetch>;
  program: Program | undefined;
  isOver: boolean;
  /** Settled by the end: rejected with the platform's words, unless the program exited with 0. */
  ended: PromiseWithResolvers<void>;
};

const second = 1_000;
const minute = 60 * second;

export class PlatformMachine<Tree> {
  readonly options: PlatformOptions<Tree>;
  /** [life]: "shortly after the object becomes inactive" without a timeout. */
  graceMs = 10 * second;
  /** From `start()` until the program listens. A first start on a host pulls the image, which takes about a minute. */
  bootMs = 2 * second;
  /** [save]: a save takes seconds, and the instance runs on meanwhile. */
  snapshotMs = 3 * second;
  /** [arch]: between SIGTERM and the end, before a host goes. */
  noticeMs = 15 * minute;
  /** The words with which the next starts fail. [api]: only `monitor()` reports them, while `running` is true. */
  refusal: string | undefined;
  run: Run<Tree> | undefined;
  readonly snapshots = new Map<string, Tree>();
  /** Those of the running container. */
  labels: Record<string, string> = {};
  starts = 0;
  /** Why machines ended, in order. */
  readonly ends: string[] = [];
  #attached: PlatformContainer<Tree> | undefined;
  #cancelStop = () => {};
  /** Registered before a start, for the next one. */
  intercepts = new Map<string, Fetch>();
  #snapshotCount = 0;

  constructor(options: PlatformOptions<Tree>) {
    this.options = options;
  }

  /** The `ctx.container` of a fresh instance of the object, which has no inactivity timeout. [life] */
  attach(): PlatformContainer<Tree> {
    this.#cancelStop();
    this.#attached = new PlatformContainer(this);
    return this.#attached;
  }

  /** The instance became inactive: the machine ends after its timeout, or soon if it set none. [life] */
  sleep(): void {
    if (this.#attached === undefined) return;
    const timeoutMs = this.#attached.inactivityTimeoutMs ?? this.graceMs;
    this.#attached = undefined;
    this.#cancelStop();
    const { run } = this;
    if (run === undefined) return;
    this.#cancelStop = this.options.clock.after(
      timeoutMs,
      "the platform ends an idle machine",
      () => this.end(run, "inactivity"),
    );
  }

  start(env: Record<string, string>, internet: boolean, tree: Tree): void {
    const { clock, boot } = this.options;
    this.starts += 1;
    const run: Run<Tree> = {
      tree,
      internet,
      intercepts: this.intercepts,
      program: undefined,
      isOver: false,
      ended: Promise.withResolvers<void>(),
    };
    this.intercepts = new Map();
    run.ended.promise.catch(() => undefined);
    this.run = run;
    const { refusal } = this;
    clock.after(this.bootMs, "the container boots", () => {
      if (run.isOver) return;
      if (refusal !== undefined) return this.end(run, refusal, new Error(refusal));
      run.program = boot({
        env,
        tree: run.tree,
        sendOut: (request) => sendOut(run, request),
        exit: (code) =>
          this.end(run, `exit ${code}`, code === 0 ? undefined : new Error(exitWords(code))),
      });
    });
  }

  end(run: Run<Tree>, why: string, error?: Error): void {
    if (run.isOver) return;
    run.isOver = true;
    this.ends.push(why);
    if (this.run === run) this.run = undefined;
    run.program?.end();
    if (error === undefined) run.ended.resolve();
    else run.ended.reject(error);
  }

  /** The host fails without notice. */
  loseHost(): void {
    if (this.run !== undefined) this.end(this.run, "host lost", new Error(exitWords(137)));
  }

  /** The host is about to go: SIGTERM now, the end later. [arch] */
  retireHost(): void {
    const { run } = this;
    if (run === undefined) return;
    run.program?.terminate();
    this.options.clock.after(this.noticeMs, "the host goes", () => this.end(run, "host retired"));
  }

  /** Read while the program runs on: what changes meanwhile is saved in part. [save] */
  save(): Promise<string> {
    const { run } = this;
    const { clock, copyTree, mixTrees } = this.options;
    if (run === undefined) return Promise.reject(new Error("the container is not running"));
    const before = copyTree(run.tree);
    this.#snapshotCount += 1;
    const id = `snapshot-${this.#snapshotCount}`;
    return new Promise((resolve, reject) => {
      clock.after(this.snapshotMs, "the platform has saved the files", () => {
        if (run.isOver) return reject(new Error("the container ended during the snapshot"));
        this.snapshots.set(id, mixTrees(before, copyTree(run.tree)));
        resolve(id);
      });
    });
  }
}

function exitWords(code: number): string {
  return `container exited with unexpected exit code: ${code}`;
}

/** Without internet and without an interception for its host nothing leaves. [api] */
async function sendOut<Tree>({ intercepts, internet }: Run<Tree>, request: Request) {
  const { hostname } = new URL(request.url);
  const intercept = intercepts.get(hostname) ?? intercepts.get("*");
  if (intercept !== undefined) return intercept(request);
  if (internet) return new Response("the internet");
  throw new TypeError("network is unreachable");
}
