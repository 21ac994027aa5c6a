/**
 * Owns taking the lease of a sandbox for a command: under a name that tells who, with a word to a person who waits.
 * Inside of `berth lock -- …` the lease is there already: it is used in turns, and left to whoever took it.
 */
import { hostname, userInfo } from "node:os";
import type { SandboxHandle } from "../../client/index.ts";
import { limits } from "../../protocol/limits.ts";
import type { Context } from "../context.ts";
import { type Turn, takeTurn } from "./take-turn.ts";
import type { TurnWork } from "./turns.ts";
import { Waiting } from "./waiting.ts";

/** What a command needs of a lease, whoever holds it. */
export type Taken = AsyncDisposable & {
  token: string;
  /** Nothing where somebody else holds it for this command. */
  fence?: number;
  /** Aborted, with the reason, when it is lost. */
  lost: AbortSignal;
  /** Told what runs under it: where others share it, that must not outlive this command. */
  runs(work: TurnWork): void;
  release(): Promise<void>;
};

export type TakeOptions = { signal?: AbortSignal | undefined; waitMs?: number | undefined };

export const leaseVariable = "BERTH_LEASE";
export const leasedVariable = "BERTH_LEASE_SANDBOX";
/** Where those who share it are told whose turn it is. */
export const turnsVariable = "BERTH_LEASE_TURNS";

export async function takeLease(
  context: Context,
  sandbox: SandboxHandle,
  { signal, waitMs }: TakeOptions = {},
): Promise<Taken> {
  const token = context.env[leaseVariable];
  if (token !== undefined && token !== "" && context.env[leasedVariable] === sandbox.id) {
    const { runs, end } = await turn(context, { signal, waitMs });
    return taken({ token, lost: new AbortController().signal, runs, release: async () => end() });
  }
  const holder = async () => (await sandbox.lease().catch(() => undefined))?.holder;
  const waiting = new Waiting(context);
  try {
    const lease = await sandbox.hold({
      holder: holderName(),
      onQueued: (position) => waiting.at(position, holder),
      onConnection: (state) => waiting.connection(state),
      ...(signal === undefined ? {} : { signal }),
      ...(waitMs === undefined ? {} : { waitMs }),
    });
    const { token, fence } = lease;
    // What runs under it ends with it.
    const runs = () => {};
    return taken({ token, fence, lost: lease.signal, runs, release: () => lease.release() });
  } finally {
    waiting.end();
  }
}

/** What others do under the same lease comes before or after it, never in between. */
async function turn(context: Context, options: TakeOptions): Promise<Turn> {
  const path = context.env[turnsVariable];
  if (path === undefined || path === "") return { runs: () => {}, end: () => {} };
  const waiting = new Waiting(context);
  try {
    return await takeTurn(path, {
      ...options,
      name: holderName(),
      onQueued: (position, holder) => waiting.at(position, async () => holder),
    });
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
