/**
 * The order of a run: lease, send the checkout, run the command, fetch what it changed, release the lease. The lease is
 * always released, and changes are fetched whatever the exit code.
 */
import { appendFileSync } from "node:fs";
import type { SandboxHandle } from "../../client/index.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { Interrupted, type Interrupts, toInterruptedDocument } from "../interrupts.ts";
import { acquireLease, type CommandLease } from "../lock/acquire-lease.ts";
import { explainLeaseLoss } from "../lock/explain-lease-loss.ts";
import type { PullResult } from "../sync/sync.ts";
import type { CheckoutSync, SentCheckout } from "./checkout-sync.ts";
import { type ProcessExit, toExitCode } from "./run-process.ts";

type RunPlan<Baseline> = {
  sandbox: SandboxHandle;
  /** Left out: no files are sent or fetched. */
  checkoutSync?: CheckoutSync<Baseline> | undefined;
  pulls: boolean;
  waitMs?: number | undefined;
  interrupts: Interrupts;
  run(lease: CommandLease): Promise<ProcessExit>;
};

export type RunOutcome = {
  ended: ProcessExit;
  code: number;
  /** The time of the command alone. */
  durationMs: number;
  sync: { sentBytes: number } | null;
  pull: PullOutcome | null;
};

export type PullOutcome =
  | (PullResult & { status: "done" | "conflict" })
  | { status: "failed"; thrown: unknown };

/** Throws `Interrupted` if an interrupt came before the command, and whatever kept the command from running. */
export async function runInSandbox<Baseline>(
  context: Context,
  plan: RunPlan<Baseline>,
): Promise<RunOutcome> {
  return await withLease(context, plan, (lease, trace) =>
    runUnderLease(context, plan, lease, trace),
  );
}

/** Runs `work` under the lease and always releases it. */
export async function withLease<Done>(
  context: Context,
  { sandbox, interrupts, waitMs }: Pick<RunPlan<unknown>, "sandbox" | "interrupts" | "waitMs">,
  work: (lease: CommandLease, trace: Trace) => Promise<Done>,
): Promise<Done> {
  const trace = openTrace(context.env);
  trace("waiting", { sandbox: sandbox.id });
  const lease = await acquireLease(context, sandbox, { signal: interrupts.requested, waitMs });
  try {
    trace("granted");
    return await work(lease, trace);
  } catch (thrown) {
    throw await explainLeaseLoss(thrown, sandbox, lease.fence);
  } finally {
    context.progress.end();
    trace("release");
    await lease.release();
  }
}

async function runUnderLease<Baseline>(
  context: Context,
  plan: RunPlan<Baseline>,
  lease: CommandLease,
  trace: Trace,
): Promise<RunOutcome> {
  const { sandbox, interrupts, checkoutSync } = plan;
  const token = lease.token;
  const sent = await sendCheckout(context, plan, lease, trace);
  trace("run");
  const startedAt = performance.now();
  const ended = await plan.run(lease);
  const durationMs = Math.round(performance.now() - startedAt);
  trace("ran", { ...ended });
  let pull: PullOutcome | null = null;
  if (checkoutSync !== undefined && sent !== undefined && plan.pulls) {
    trace("pull");
    // Changes are fetched however the command ended; another Ctrl-C cancels that.
    const { forced } = interrupts;
    const cancelled = forced.aborted ? lease.lost : AbortSignal.any([lease.lost, forced]);
    pull = await toPullOutcome(
      checkoutSync.pull(sandbox, sent.baseline, { lease: token, signal: cancelled }),
    );
  }
  const sync = sent === undefined ? null : { sentBytes: sent.sentBytes };
  return { ended, code: runExitCode(ended, pull, interrupts.first), durationMs, sync, pull };
}

/** Sends the checkout as it is now; undefined if there is none to send. */
export async function sendCheckout<Baseline>(
  context: Context,
  {
    sandbox,
    interrupts,
    checkoutSync,
  }: Pick<RunPlan<Baseline>, "sandbox" | "interrupts" | "checkoutSync">,
  lease: CommandLease,
  trace: Trace,
): Promise<SentCheckout<Baseline> | undefined> {
  interrupts.requested.throwIfAborted();
  const stopped = AbortSignal.any([lease.lost, interrupts.requested]);
  let sent: SentCheckout<Baseline> | undefined;
  if (checkoutSync !== undefined) {
    trace("sync");
    sent = await preferAbortReason(
      checkoutSync.up(sandbox, { lease: lease.token, signal: stopped }),
      stopped,
    );
    context.progress.end();
  }
  stopped.throwIfAborted();
  return sent;
}

async function toPullOutcome(pending: Promise<PullResult>): Promise<PullOutcome> {
  try {
    const done = await pending;
    const { conflicts, kept, refused } = done;
    const isComplete = conflicts.length + kept.length + refused.length === 0;
    return { status: isComplete ? "done" : "conflict", ...done };
  } catch (thrown) {
    // The command has run, so its exit code is reported anyway.
    return { status: "failed", thrown };
  }
}

function runExitCode(
  ended: ProcessExit,
  pull: PullOutcome | null,
  first: Interrupted | undefined,
): number {
  if (first !== undefined) return first.exitCode;
  const code = toExitCode(ended);
  return code === 0 && pull !== null && pull.status !== "done" ? 1 : code;
}

/** After an abort, the error of the work may be anything: throw the reason of the abort. */
async function preferAbortReason<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  try {
    return await work;
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown;
  }
}

/** The exit code of an interrupt; people get no message. */
export function interruptExitCode(
  { json, output }: Context,
  thrown: unknown,
  interrupts: Interrupts,
): number {
  const interrupt = findInterrupt(thrown, interrupts);
  if (interrupt === undefined) throw thrown;
  if (json) output.printJson(toInterruptedDocument(interrupt.signal));
  return interrupt.exitCode;
}

function findInterrupt(thrown: unknown, { first }: Interrupts): Interrupted | undefined {
  if (thrown instanceof Interrupted) return thrown;
  return !(thrown instanceof Failure) && isAbort(thrown) ? first : undefined;
}

function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown.name === "AbortError" || thrown.name === "Interrupted");
}

type Step = "waiting" | "granted" | "sync" | "run" | "ran" | "pull" | "release";

type Trace = (step: Step, facts?: Record<string, unknown>) => void;

/** Records the steps of a run in the file that BERTH_TRACE names. Each line is one write, so commands may share a file. */
function openTrace(env: NodeJS.ProcessEnv): Trace {
  const file = env.BERTH_TRACE;
  if (file === undefined || file === "") return () => {};
  return (step, facts = {}) => {
    appendFileSync(file, `${JSON.stringify({ pid: process.pid, step, ...facts })}\n`);
  };
}
