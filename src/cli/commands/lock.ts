/**
 * Owns `berth lock`: the lease for as long as a local command runs, who holds it, and taking it away.
 * Does not own the lease (lock/take-lease.ts) nor the local command (lock/run-local.ts).
 */
import { text, whole } from "../args/option.ts";
import { rest } from "../args/positional.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../live/interrupts.ts";
import { runLocal } from "../lock/run-local.ts";
import { takeLease } from "../lock/take-lease.ts";
import { viewWords } from "../lock/view-words.ts";
import { inWordsOfLoss } from "../lock/why-lost.ts";
import { codeOfInterrupt } from "../run/run.ts";

const statusCommand = command({
  name: "status",
  summary: "say who works alone in the sandbox, and who waits",
  options: sandboxOptions,
  examples: [["Who is it", "berth lock status"]],
  async run(context, { options }) {
    const { sandbox, id } = await findSandbox(context, {
      ...readSandbox(options),
      make: false,
      ready: false,
    });
    const view = await sandbox.lease();
    if (context.json) context.output.document({ sandbox: id, ...view });
    else for (const line of viewWords(view, Date.now())) context.output.line(line);
  },
});

const breakCommand = command({
  name: "break",
  summary: "take the lease from whoever holds it",
  about:
    "What the holder runs is ended; the holder is told, and an event says who did it, and why.",
  options: { ...sandboxOptions, reason: text("--reason <why>", "told to everybody; required") },
  examples: [["Its owner has gone home", 'berth lock break --reason "forgotten over night"']],
  async run(context, { options: { reason, ...options } }) {
    if (reason === undefined || reason.trim() === "") {
      throw new Failure("--reason is needed: whoever loses the lease is told why", {
        hint: 'For example: berth lock break --reason "forgotten over night"',
        code: "bad_usage",
      });
    }
    const { sandbox, id } = await findSandbox(context, {
      ...readSandbox(options),
      make: false,
      ready: false,
    });
    const before = await sandbox.lease();
    const { state } = await sandbox.breakLease(reason);
    const holder = before.state === "held" ? before.holder : undefined;
    if (context.json) context.output.document({ sandbox: id, holder: holder ?? null, state });
    else if (holder === undefined) context.output.line("nobody held it");
    else context.output.line(`taken from ${holder}`);
  },
});

export const lockCommand = command({
  name: "lock",
  summary: "work alone in the sandbox while a local command runs",
  about:
    "Others wait until it ends. `berth exec`, `berth push` and `berth cp` inside of it use its lease. Its exit code is passed on.",
  args: { command: rest("command", "what to run on this machine, and its arguments") },
  options: {
    ...sandboxOptions,
    wait: whole("--wait <seconds>", "how long to wait for others to finish (an hour)", {
      ...{ min: 0, max: 60 * 60 },
    }),
  },
  examples: [
    ["Several steps that nobody comes between", "berth lock -- ./release.sh"],
    ["Who holds it", "berth lock status"],
  ],
  json: "for `status` and `break`: stdout is exactly one JSON document",
  passThrough: true,
  ownSignals: true,
  commands: [statusCommand, breakCommand],
  async run(context, { args, options }) {
    demandNoJson(context);
    using interrupts = new Interrupts();
    try {
      const { wait } = options;
      const signal = interrupts.asked;
      const waitMs = wait === undefined ? undefined : wait * 1000;
      const which = readSandbox(options);
      const { sandbox } = await findSandbox(context, { ...which, signal, waitMs });
      const lease = await takeLease(context, sandbox, { signal, waitMs });
      try {
        return await runLocal(context, args.command, { sandbox, lease, interrupts });
      } catch (thrown) {
        throw await inWordsOfLoss(thrown, sandbox, lease.fence);
      } finally {
        await lease.release();
      }
    } catch (thrown) {
      return codeOfInterrupt(context, thrown, interrupts);
    }
  },
});

/** Its output is the local command's own. */
function demandNoJson({ json }: Context): void {
  if (!json) return;
  throw new Failure("--json is for `berth lock status` and `berth lock break`", {
    hint: "The output of `berth lock -- <command>` is that of the command.",
    code: "bad_usage",
  });
}
