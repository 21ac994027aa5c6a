/** `berth lock`: holds the lease while a local command runs, shows the holder, and breaks the lease. */
import type { LeaseView } from "../../protocol/lease.ts";
import { rest, text, waitOption } from "../args/option.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { Failure } from "../failure.ts";
import { findExistingSandbox, findSandbox } from "../find-sandbox.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { explainLeaseLoss } from "../lock/explain-lease-loss.ts";
import { runLocal } from "../lock/run-local.ts";

const statusCommand = command({
  name: "status",
  summary: "Show who holds the lease, and who waits",
  options: sandboxOptions,
  examples: [["Who holds it", "berth lock status"]],
  async run(context, { options }) {
    const { sandbox, id } = await findExistingSandbox(context, options);
    const view = await sandbox.lease.get();
    context.output.printResult({ sandbox: id, ...view }, ...formatLease(view, Date.now()));
  },
});

const breakCommand = command({
  name: "break",
  summary: "Take the lease away from its holder",
  about:
    "Ends what the holder runs. The holder gets the reason, and an event records who broke the lease.",
  options: {
    ...sandboxOptions,
    reason: text("--reason <why>", "Reason, shown to everybody (required)"),
  },
  examples: [["Its owner has gone home", 'berth lock break --reason "forgotten over night"']],
  async run(context, { options }) {
    const { reason = "" } = options;
    if (reason.trim() === "") {
      throw new Failure("`--reason` is required: the holder gets to see it.", {
        hint: 'For example: `berth lock break --reason "forgotten over night"`.',
        code: "bad_usage",
      });
    }
    const { sandbox, id } = await findExistingSandbox(context, options);
    const before = await sandbox.lease.get();
    const { state } = await sandbox.lease.break(reason);
    const holder = before.state === "held" ? before.holder : null;
    const text = holder === null ? "The lease was free." : `The lease was taken from ${holder}.`;
    context.output.printResult({ sandbox: id, holder, state }, text);
  },
});

export const lockCommand = command({
  name: "lock",
  summary: "Hold the lease while a local command runs",
  about:
    "Others wait until it ends. `berth exec`, `berth push` and `berth cp` inside of it use its lease. The exit code is the command's.",
  args: { command: rest("command", "Command to run on this machine, and its arguments") },
  options: { ...sandboxOptions, waitMs: waitOption },
  examples: [
    ["Several steps that nobody can interrupt", "berth lock -- ./release.sh"],
    ["Who holds it", "berth lock status"],
  ],
  json: "For `status` and `break`: print exactly one JSON document on stdout",
  passThrough: true,
  ownSignals: true,
  commands: [statusCommand, breakCommand],
  async run(context, { args, options }) {
    if (context.json) throw jsonRefused();
    const { waitMs } = options;
    const { sandbox } = await findSandbox(context, { ...parseSandboxOptions(options), waitMs });
    await using lease = await acquireLease(context, sandbox, waitMs);
    try {
      return await runLocal(context, args.command, sandbox, lease);
    } catch (thrown) {
      throw await explainLeaseLoss(thrown, sandbox, lease.fence);
    }
  },
});

/** The output belongs to the local command. */
function jsonRefused(): Failure {
  return new Failure("`--json` can only be used with `berth lock status` and `berth lock break`.", {
    hint: "The output of `berth lock -- <command>` is the command's.",
    code: "bad_usage",
  });
}

export function formatLease(view: LeaseView, now: number): string[] {
  const lines = [formatState(view, now)];
  for (const { holder, waitingMs } of view.waiters) {
    lines.push(`Waiting: ${holder}, for ${formatDuration(waitingMs)}`);
  }
  const more = view.waiterCount - view.waiters.length;
  if (more > 0) lines.push(`And ${more} more`);
  return lines;
}

function formatState(view: LeaseView, now: number): string {
  switch (view.state) {
    case "free":
      return "Free";
    case "offered":
      return "Offered to the first waiter";
    case "draining":
      return `Ending the work of ${view.holder}: ${view.reason}`;
    case "held": {
      const since = view.acquiredAt === undefined ? 0 : now - Date.parse(view.acquiredAt);
      return `Held by ${view.holder}, for ${formatDuration(Math.max(0, since))}`;
    }
  }
}

function formatDuration(ms: number): string {
  const all = Math.round(ms / 1000);
  return all < 120 ? `${all} s` : `${Math.floor(all / 60)} min`;
}
