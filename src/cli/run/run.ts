/** The order of a run: lease, send the checkout, run the command, fetch what it changed, always release the lease. */
import { appendFileSync } from "node:fs";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import type { Context } from "../context.ts";
import { ownFailureCode } from "../failure.ts";
import type { FoundSandbox } from "../find-sandbox.ts";
import type { Interrupted } from "../interrupts.ts";
import { acquireLease, type CommandLease } from "../lock/acquire-lease.ts";
import { explainLeaseLoss } from "../lock/explain-lease-loss.ts";
import type { EarlyScan } from "../sync/early-scan.ts";
import { type PullResult, pull, type ScannedCheckout, type Synced, syncUp } from "../sync/sync.ts";
import { reportKept, toKeptDocument } from "./report-kept.ts";
import { type ProcessExit, toExitCode } from "./run-process.ts";

type RunPlan = {
  pulls: boolean;
  waitMs: number | undefined;
  early: EarlyScan;
  run(lease: CommandLease): Promise<ProcessExit>;
};

export type RunOutcome = {
  ended: ProcessExit;
  code: number;
  /** The time of the command alone. */
  durationMs: number;
  sync: { sentBytes: number; kept: unknown } | null;
  pull: PullOutcome | null;
};

export type PullOutcome =
  | (PullResult & { status: "done" | "conflict" })
  | { status: "failed"; thrown: unknown };

/** Throws `Interrupted` if an interrupt came before the command, and whatever kept the command from running. */
export async function runInSandbox(
  context: Context,
  found: FoundSandbox,
  { pulls, waitMs, early, run }: RunPlan,
): Promise<RunOutcome> {
  const { interrupts } = context;
  const { sandbox, checkout } = found;
  return await withLease(context, sandbox, waitMs, async (lease) => {
    const sent = await sendCheckout(context, found, lease, early.take(lease));
    trace(context, "run");
    const startedAt = performance.now();
    const ended = await run(lease);
    const durationMs = Math.round(performance.now() - startedAt);
    trace(context, "ran", { ...ended });
    let pulled: PullOutcome | null = null;
    if (checkout !== undefined && sent !== undefined && pulls) {
      trace(context, "pull");
      // Changes are fetched however the command ended; another Ctrl-C cancels that.
      const { forced } = interrupts;
      const signal = forced.aborted ? lease.lost : AbortSignal.any([lease.lost, forced]);
      const options = { lease: lease.token, signal };
      pulled = await toPullOutcome(pull(sandbox, checkout.folder, sent.baseline, options));
    }
    const sync =
      sent === undefined ? null : { sentBytes: sent.sentBytes, kept: toKeptDocument(sent) };
    const code = runExitCode(ended, pulled, interrupts.first);
    return { ended, code, durationMs, sync, pull: pulled };
  });
}

/** Runs `work` under the lease and always releases it. */
export async function withLease<Done>(
  context: Context,
  sandbox: SandboxHandle,
  waitMs: number | undefined,
  work: (lease: CommandLease) => Promise<Done>,
): Promise<Done> {
  trace(context, "waiting", { sandbox: sandbox.id });
  const lease = await acquireLease(context, sandbox, waitMs);
  try {
    trace(context, "granted");
    return await work(lease);
  } catch (thrown) {
    throw await explainLeaseLoss(thrown, sandbox, lease.fence);
  } finally {
    context.progress.end();
    trace(context, "release");
    await lease.release();
  }
}

/** Sends the checkout as it is now, or as it was read a moment ago; undefined if the sandbox was given by id: its files are not this checkout's. */
export async function sendCheckout(
  context: Context,
  { sandbox, checkout, view }: Pick<FoundSandbox, "sandbox" | "checkout" | "view">,
  lease: CommandLease,
  scanned?: Promise<ScannedCheckout>,
): Promise<Synced | undefined> {
  const { interrupts, progress } = context;
  const signal = AbortSignal.any([interrupts.requested, lease.lost]);
  signal.throwIfAborted();
  if (checkout === undefined) return undefined;
  trace(context, "sync");
  const show = (text: string) => progress.show(text);
  const { restoredAt } = view;
  try {
    const options = { lease: lease.token, signal, progress: show, restoredAt, scanned };
    const sent = await syncUp(sandbox, checkout.folder, options);
    progress.end();
    reportKept(context, sent);
    return sent;
  } finally {
    progress.end();
    // After an abort, the error of the sync may be anything: throws the reason of the abort.
    signal.throwIfAborted();
  }
}

export async function toPullOutcome(pending: Promise<PullResult>): Promise<PullOutcome> {
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
  return code === 0 && pull !== null && pull.status !== "done" ? ownFailureCode : code;
}

type Step = "waiting" | "granted" | "sync" | "run" | "ran" | "pull" | "release";

/** Records a step of a run in the file that BERTH_TRACE names. Each line is one write, so commands may share a file. */
export function trace({ env }: Context, step: Step, facts: Record<string, unknown> = {}): void {
  const file = env.BERTH_TRACE;
  if (file === undefined || file === "") return;
  appendFileSync(file, `${JSON.stringify({ pid: process.pid, step, ...facts })}\n`);
}
