/**
 * Owns taking the lease of a sandbox for a command: under a name that tells who, with a word to a person who waits.
 * Inside of `berth lock -- …` the lease is there already: it is used, and left to whoever took it.
 */
import { hostname, userInfo } from "node:os";
import type { SandboxHandle } from "../../client/index.ts";
import { limits } from "../../protocol/limits.ts";
import type { Context } from "../context.ts";

/** What a command needs of a lease, whoever holds it. */
export type Taken = AsyncDisposable & {
  token: string;
  /** Nothing where somebody else holds it for this command. */
  fence?: number;
  /** Aborted, with the reason, when it is lost. */
  lost: AbortSignal;
  release(): Promise<void>;
};

export type TakeOptions = { signal?: AbortSignal | undefined; waitMs?: number | undefined };

export const leaseVariable = "BERTH_LEASE";
export const leasedVariable = "BERTH_LEASE_SANDBOX";

const tellsAfterMs = 500;

export async function takeLease(
  context: Context,
  sandbox: SandboxHandle,
  { signal, waitMs }: TakeOptions = {},
): Promise<Taken> {
  const token = context.env[leaseVariable];
  if (token !== undefined && token !== "" && context.env[leasedVariable] === sandbox.id) {
    return taken({ token, lost: new AbortController().signal, release: async () => {} });
  }
  const waiting = new Waiting(context, sandbox);
  try {
    const lease = await sandbox.hold({
      holder: holderName(),
      onQueued: (position) => waiting.at(position),
      onConnection: (state) => waiting.connection(state),
      ...(signal === undefined ? {} : { signal }),
      ...(waitMs === undefined ? {} : { waitMs }),
    });
    const { token, fence } = lease;
    return taken({ token, fence, lost: lease.signal, release: () => lease.release() });
  } finally {
    waiting.end();
  }
}

function taken(lease: Omit<Taken, typeof Symbol.asyncDispose>): Taken {
  return { ...lease, [Symbol.asyncDispose]: lease.release };
}

/** The process too: several commands of one person are several holders. */
export function holderName(): string {
  return `${userName()}@${hostname()} (${process.pid})`
    .replace(/\p{Cc}/gu, " ")
    .slice(-limits.holderCharsMax);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a number without a name.
    return String(process.getuid?.() ?? "somebody");
  }
}

/** Says nothing of a wait that is over before anybody wonders, and nothing with `--json`. */
class Waiting {
  readonly #context: Context;
  readonly #sandbox: SandboxHandle;
  #position = 0;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #isTold = false;

  constructor(context: Context, sandbox: SandboxHandle) {
    this.#context = context;
    this.#sandbox = sandbox;
  }

  at(position: number): void {
    this.#position = position;
    this.#timer ??= setTimeout(() => this.#tell(), tellsAfterMs);
    if (this.#isTold && this.#context.tty) this.#tell();
  }

  connection(state: "lost" | "back"): void {
    const { json, tty, progress, output } = this.#context;
    if (json) return;
    const text = state === "lost" ? "connection lost; trying again" : "connected again";
    if (tty) progress.tell(text);
    else output.say(text);
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#context.progress.end();
  }

  async #tell(): Promise<void> {
    this.#isTold = true;
    if (this.#context.json) return;
    const view = await this.#sandbox.lease().catch(() => undefined);
    if (this.#isOver) return;
    const before = this.#position === 0 ? "" : `, ${this.#position} before this one`;
    const text = `waiting for ${view?.holder ?? "the sandbox"} to finish${before}`;
    if (this.#context.tty) this.#context.progress.tell(text);
    else this.#context.output.say(text);
  }
}
