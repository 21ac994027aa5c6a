/** Acquires the lease of a sandbox for a command. Inside `berth lock -- …` commands take turns with its lease. */
import { hostname, userInfo } from "node:os";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { limits } from "../../protocol/limits.ts";
import type { Context } from "../context.ts";
import { loadWebSocket } from "../server/web-socket.ts";
import { joinLeaseQueue, unservedTurn } from "./join-lease-queue.ts";
import type { LeasedWork } from "./lease-queue.ts";

/** The lease as a command sees it, held by itself or by `berth lock`. */
export type CommandLease = AsyncDisposable & {
  token: string;
  /** It was not free at once. */
  hasWaited: boolean;
  /** Undefined where `berth lock` holds it for this command. */
  fence?: number;
  /** Aborts with the reason when the lease is lost. */
  lost: AbortSignal;
  /** Registers work that runs under the lease: if it is shared, the work must end with this command. */
  registerWork(work: LeasedWork): void;
  release(): Promise<void>;
};

export const leaseVariable = "BERTH_LEASE";
export const leaseSandboxVariable = "BERTH_LEASE_SANDBOX";
/** The socket of the queue for commands that share the lease. */
export const queueVariable = "BERTH_LEASE_TURNS";

/** Waits until the lease is free, `waitMs` is over (default: one hour) or the command is interrupted. */
export async function acquireLease(
  context: Context,
  sandbox: SandboxHandle,
  waitMs: number = limits.leaseQueueMaxMs,
): Promise<CommandLease> {
  const waiting = new WaitNotice(context);
  const options = { waitMs, signal: context.interrupts.requested };
  const token = context.env[leaseVariable];
  const isShared =
    token !== undefined && token !== "" && context.env[leaseSandboxVariable] === sandbox.id;
  try {
    if (isShared) return await joinSharedLease(token, context.env[queueVariable], waiting, options);
    const holder = async () => (await sandbox.lease.get().catch(() => undefined))?.holder;
    await loadWebSocket();
    const lease = await sandbox.lease.hold({
      ...options,
      holder: holderName(),
      onQueued: (position) => waiting.queued(position, holder),
      onConnection: (state) => waiting.connection(state),
    });
    return toCommandLease({
      token: lease.token,
      fence: lease.fence,
      hasWaited: waiting.hasBegun,
      lost: lease.signal,
      // The work ends with the lease.
      registerWork: () => {},
      release: () => lease.release(),
    });
  } finally {
    waiting.end();
  }
}

/** Commands that share a lease run one after the other. */
async function joinSharedLease(
  token: string,
  queuePath: string | undefined,
  waiting: WaitNotice,
  options: { waitMs: number; signal: AbortSignal },
): Promise<CommandLease> {
  const turn = !queuePath
    ? unservedTurn
    : await joinLeaseQueue(queuePath, {
        ...options,
        name: holderName(),
        onQueued: (position, holder) => waiting.queued(position, async () => holder),
      });
  return toCommandLease({
    token,
    hasWaited: waiting.hasBegun,
    lost: new AbortController().signal,
    registerWork: turn.registerWork,
    release: async () => turn.end(),
  });
}

function toCommandLease(lease: Omit<CommandLease, typeof Symbol.asyncDispose>): CommandLease {
  return { ...lease, [Symbol.asyncDispose]: lease.release };
}

/** Includes the process id, because several commands of one user are several holders. */
function holderName(): string {
  return `${userName()}@${hostname()} (${process.pid})`
    .replace(/\p{Cc}/gu, " ")
    .slice(-limits.holderCharsMax);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // The user of a container may have no name.
    return String(process.getuid?.() ?? "somebody");
  }
}

const noticeDelayMs = 500;

/** Tells a user who waits for the lease who holds it, unless the wait is short or the output is JSON. */
class WaitNotice {
  readonly #context: Context;
  #position = 0;
  #holder: () => Promise<string | undefined> = async () => undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;
  #isShown = false;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Whether somebody else had the lease. */
  get hasBegun(): boolean {
    return this.#timer !== undefined;
  }

  queued(position: number, holder: () => Promise<string | undefined>): void {
    this.#position = position;
    this.#holder = holder;
    this.#timer ??= setTimeout(() => this.#print(), noticeDelayMs);
    if (this.#isShown && this.#context.tty) this.#print();
  }

  connection(state: "lost" | "back"): void {
    const { json, tty, progress, output } = this.#context;
    if (json) return;
    const text = state === "lost" ? "Connection lost; reconnecting" : "Connected again";
    if (tty) progress.show(text);
    else output.info(text);
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    this.#context.progress.end();
  }

  async #print(): Promise<void> {
    this.#isShown = true;
    if (this.#context.json) return;
    const holder = await this.#holder();
    if (this.#hasEnded) return;
    const others = this.#position === 0 ? "" : `, ${this.#position} before this one`;
    const text = `Waiting for ${holder ?? "the sandbox"} to finish${others}`;
    if (this.#context.tty) this.#context.progress.show(text);
    else this.#context.output.info(text);
  }
}
