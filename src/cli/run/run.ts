/**
 * Owns the order of a run: the sandbox, its lease, the checkout's way up, the command, what it changed, letting go.
 * Whatever happens in between, the lease is let go; whatever the command's exit code, what it changed is fetched.
 */
import type { SandboxHandle } from "../../client/index.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { Interrupted, type Interrupts, interruptedDocument } from "../live/interrupts.ts";
import { type Trace, traceOf } from "../live/trace.ts";
import { type Taken, takeLease } from "../lock/take-lease.ts";
import { inWordsOfLoss } from "../lock/why-lost.ts";
import { type Ended, shellCode } from "./run-process.ts";
import type { Pulled, SentUp, Syncing } from "./syncing.ts";

export type Plan<Baseline> = {
  sandbox: SandboxHandle;
  /** Left out: its files stay as they are. */
  syncing?: Syncing<Baseline> | undefined;
  pulls: boolean;
  waitMs?: number | undefined;
  interrupts: Interrupts;
  run(lease: Taken): Promise<Ended>;
};

export type Outcome = {
  ended: Ended;
  code: number;
  /** Of the command alone. */
  durationMs: number;
  sync: { sentBytes: number } | null;
  pull: PullOutcome | null;
};

export type PullOutcome =
  | (Pulled & { status: "done" | "conflict" })
  | { status: "failed"; thrown: unknown };

/** Throws `Interrupted` where that came before the command, and anything that kept the command from running. */
export async function runFlow<Baseline>(context: Context, plan: Plan<Baseline>): Promise<Outcome> {
  return await alone(context, plan, (lease, trace) => underLease(context, plan, lease, trace));
}

/** Work under the lease, which is let go whatever becomes of it. */
export async function alone<Done>(
  context: Context,
  { sandbox, interrupts, waitMs }: Pick<Plan<unknown>, "sandbox" | "interrupts" | "waitMs">,
  work: (lease: Taken, trace: Trace) => Promise<Done>,
): Promise<Done> {
  const trace = traceOf(context.env);
  trace("waiting", { sandbox: sandbox.id });
  const lease = await takeLease(context, sandbox, { signal: interrupts.asked, waitMs });
  try {
    trace("granted");
    return await work(lease, trace);
  } catch (thrown) {
    throw await inWordsOfLoss(thrown, sandbox, lease.fence);
  } finally {
    context.progress.end();
    trace("release");
    await lease.release();
  }
}

async function underLease<Baseline>(
  context: Context,
  plan: Plan<Baseline>,
  lease: Taken,
  trace: Trace,
): Promise<Outcome> {
  const { sandbox, interrupts, syncing } = plan;
  const token = lease.token;
  const sent = await sentUp(context, plan, lease, trace);
  trace("run");
  const began = performance.now();
  const ended = await plan.run(lease);
  const durationMs = Math.round(performance.now() - began);
  trace("ran", { ...ended });
  let pull: PullOutcome | null = null;
  if (syncing !== undefined && sent !== undefined && plan.pulls) {
    trace("pull");
    // What the command has changed is fetched, whatever it took to end it; another Ctrl-C calls that off.
    const { insisted } = interrupts;
    const after = insisted.aborted ? lease.lost : AbortSignal.any([lease.lost, insisted]);
    pull = await pulled(syncing.pull(sandbox, sent.baseline, { lease: token, signal: after }));
  }
  const sync = sent === undefined ? null : { sentBytes: sent.sentBytes };
  return { ended, code: codeOf(ended, pull, interrupts.first), durationMs, sync, pull };
}

/** The checkout as it is now; nothing where none is brought along. */
export async function sentUp<Baseline>(
  context: Context,
  { sandbox, interrupts, syncing }: Pick<Plan<Baseline>, "sandbox" | "interrupts" | "syncing">,
  lease: Taken,
  trace: Trace,
): Promise<SentUp<Baseline> | undefined> {
  interrupts.asked.throwIfAborted();
  const before = AbortSignal.any([lease.lost, interrupts.asked]);
  let sent: SentUp<Baseline> | undefined;
  if (syncing !== undefined) {
    trace("sync");
    sent = await orReason(syncing.up(sandbox, { lease: lease.token, signal: before }), before);
    context.progress.end();
  }
  before.throwIfAborted();
  return sent;
}

async function pulled(pulling: Promise<Pulled>): Promise<PullOutcome> {
  try {
    const done = await pulling;
    const { conflicts, kept, refused } = done;
    const isAll = conflicts.length + kept.length + refused.length === 0;
    return { status: isAll ? "done" : "conflict", ...done };
  } catch (thrown) {
    // The command has run: its exit code is told all the same.
    return { status: "failed", thrown };
  }
}

function codeOf(ended: Ended, pull: PullOutcome | null, first: Interrupted | undefined): number {
  if (first !== undefined) return first.exitCode;
  const code = shellCode(ended);
  return code === 0 && pull !== null && pull.status !== "done" ? 1 : code;
}

/** What an abort makes fail may fail in any words: the reason of the abort is the reason. */
async function orReason<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  try {
    return await work;
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown;
  }
}

/** An interrupt before the command began is told to people by the exit code alone. */
export function codeOfInterrupt(
  { json, output }: Context,
  thrown: unknown,
  interrupts: Interrupts,
): number {
  const interrupt = interruptOf(thrown, interrupts);
  if (interrupt === undefined) throw thrown;
  if (json) output.document(interruptedDocument(interrupt.signal));
  return interrupt.exitCode;
}

function interruptOf(thrown: unknown, { first }: Interrupts): Interrupted | undefined {
  if (thrown instanceof Interrupted) return thrown;
  return !(thrown instanceof Failure) && isAbort(thrown) ? first : undefined;
}

function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown.name === "AbortError" || thrown.name === "Interrupted");
}
