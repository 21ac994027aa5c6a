/**
 * `berth lock`: holds the lease while a local command runs, shows the holder, and breaks the lease.
 */
import { text, wholeNumber } from "../args/option.ts";
import { rest } from "../args/positional.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../interrupts.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { explainLeaseLoss } from "../lock/explain-lease-loss.ts";
import { formatLease } from "../lock/format-lease.ts";
import { runLocal } from "../lock/run-local.ts";
import { interruptExitCode } from "../run/run.ts";

const statusCommand = command({
  name: "status",
  summary: "Show who holds the lease, and who waits",
  options: sandboxOptions,
  examples: [["Who holds it", "berth lock status"]],
  async run(context, { options }) {
    const { sandbox, id } = await findSandbox(context, {
      ...parseSandboxOptions(options),
      make: false,
      ready: false,
    });
    const view = await sandbox.lease();
    if (context.json) context.output.printJson({ sandbox: id, ...view });
    else for (const line of formatLease(view, Date.now())) context.output.print(line);
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
  async run(context, { options: { reason, ...options } }) {
    if (reason === undefined || reason.trim() === "") {
      throw new Failure("`--reason` is required: the holder gets to see it.", {
        hint: 'For example: `berth lock break --reason "forgotten over night"`.',
        code: "bad_usage",
      });
    }
    const { sandbox, id } = await findSandbox(context, {
      ...parseSandboxOptions(options),
      make: false,
      ready: false,
    });
    const before = await sandbox.lease();
    const { state } = await sandbox.breakLease(reason);
    const holder = before.state === "held" ? before.holder : undefined;
    if (context.json) context.output.printJson({ sandbox: id, holder: holder ?? null, state });
    else if (holder === undefined) context.output.print("The lease was free.");
    else context.output.print(`The lease was taken from ${holder}.`);
  },
});

export const lockCommand = command({
  name: "lock",
  summary: "Hold the lease while a local command runs",
  about:
    "Others wait until it ends. `berth exec`, `berth push` and `berth cp` inside of it use its lease. The exit code is the command's.",
  args: { command: rest("command", "Command to run on this machine, and its arguments") },
  options: {
    ...sandboxOptions,
    wait: wholeNumber("--wait <seconds>", "How long to wait for the lease (default: 3600)", {
      ...{ min: 0, max: 60 * 60 },
    }),
  },
  examples: [
    ["Several steps that nobody can interrupt", "berth lock -- ./release.sh"],
    ["Who holds it", "berth lock status"],
  ],
  json: "For `status` and `break`: print exactly one JSON document on stdout",
  passThrough: true,
  ownSignals: true,
  commands: [statusCommand, breakCommand],
  async run(context, { args, options }) {
    refuseJson(context);
    using interrupts = new Interrupts();
    try {
      const { wait } = options;
      const signal = interrupts.requested;
      const waitMs = wait === undefined ? undefined : wait * 1000;
      const which = parseSandboxOptions(options);
      const { sandbox } = await findSandbox(context, { ...which, signal, waitMs });
      const lease = await acquireLease(context, sandbox, { signal, waitMs });
      try {
        return await runLocal(context, args.command, { sandbox, lease, interrupts });
      } catch (thrown) {
        throw await explainLeaseLoss(thrown, sandbox, lease.fence);
      } finally {
        await lease.release();
      }
    } catch (thrown) {
      return interruptExitCode(context, thrown, interrupts);
    }
  },
});

/** The output belongs to the local command. */
function refuseJson({ json }: Context): void {
  if (!json) return;
  throw new Failure("`--json` can only be used with `berth lock status` and `berth lock break`.", {
    hint: "The output of `berth lock -- <command>` is the command's.",
    code: "bad_usage",
  });
}
