/** `berth exec`: its options, and what it prints at the end. See run/run.ts for the order of a run. */
import { badOption, flag, notFlag, rest, seconds, text, waitOption } from "../args/option.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import type { Checkout } from "../checkout/checkout.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import type { CommandLease } from "../lock/acquire-lease.ts";
import { CapturedOutput, StreamedOutput } from "../run/output-sinks.ts";
import { printReport, toRunDocument } from "../run/report.ts";
import { runInSandbox } from "../run/run.ts";
import { runProcess } from "../run/run-process.ts";
import { runTerminal } from "../run/run-terminal.ts";
import { environmentOption, toProgram, userOption } from "../run/to-program.ts";
import { EarlyScan } from "../sync/early-scan.ts";

const secondsMax = 7 * 24 * 60 * 60;

export const execCommand = command({
  name: "exec",
  summary: "Run a command on this checkout, in its sandbox",
  about:
    "Sends the checkout as it is now, with staged and unstaged changes, runs the command under the lease with live input and output, and fetches what it changed. With `--id` no files are sent or fetched. The exit code is the command's.",
  args: { command: rest("command", "Command to run, and its arguments") },
  options: {
    pull: notFlag("--no-pull", "Do not fetch what the command changes; the next sync keeps it"),
    reset: flag("--reset", "Replace the sandbox by a new one first"),
    force: flag("--force", "With --reset: even if somebody holds its lease"),
    yes: flag("-y, --yes", "With --reset: do not ask, even if the old one has unsynced work"),
    ...sandboxOptions,
    tty: flag("-t, --tty", "Run it in a terminal; otherwise it cannot read what is typed"),
    stdin: notFlag("-n, --no-stdin", "Do not read standard input, as in `while read` loops"),
    cwd: text("--cwd <folder>", "Working directory; relative to the top of the checkout"),
    user: userOption,
    env: environmentOption,
    timeoutMs: seconds("--timeout <seconds>", "End it after this time, with exit code 124", {
      min: 1,
      max: secondsMax,
    }),
    waitMs: waitOption,
  },
  examples: [
    ["Run the tests on the current changes", "berth exec -- npm test"],
    ["With input", "git log | berth exec -- wc -l"],
    ["With shell syntax", "berth exec -- sh -c 'make && ls dist | wc -l'"],
    ["A full-screen program", "berth exec --tty -- vim README.md"],
    ["As root inside", "berth exec --user root -- apt-get install --yes jq"],
    ["Machine-readable output", "berth exec --json -- make | jq .exitCode"],
  ],
  passThrough: true,
  ownSignals: true,
  async run(context, { args, options }) {
    const { json, output, interrupts } = context;
    const { tty, reset, force, yes, pull: pulls, timeoutMs, waitMs } = options;
    if (tty) requireTerminal(context, timeoutMs);
    if (reset && options.id !== undefined) throw resetWithId();
    if (force && !reset) throw badOption("--force", "can only be used with `--reset`");
    interrupts.watchOutputs(context);
    const onExisting = reset ? "replace" : "reuse";
    const which = parseSandboxOptions(options);
    using early = new EarlyScan(context);
    const onCheckout = ({ folder }: Checkout) => early.start(folder);
    const existing = { onExisting, force, yes } as const;
    const found = await findSandbox(context, { ...which, waitMs, ...existing, onCheckout });
    const input = options.stdin ? {} : ({ stdin: "none" } as const);
    const program = { ...toProgram(context, found, args.command, options), timeoutMs, ...input };
    const captured = new CapturedOutput();
    const sink = json ? captured : new StreamedOutput(context);
    const run = (lease: CommandLease) =>
      tty
        ? runTerminal(context, program, found.sandbox, lease)
        : runProcess(context, program, found.sandbox, lease, sink);
    const outcome = await runInSandbox(context, found, { pulls, waitMs, early, run });
    if (json) output.printJson(toRunDocument(found, outcome, captured.document()));
    else printReport(context, found, outcome, timeoutMs);
    const unwritten = interrupts.first?.unwritten;
    if (unwritten !== undefined) throw outputLost(unwritten);
    return outcome.code;
  },
});

function requireTerminal({ stdin, stdout, json }: Context, timeoutMs: number | undefined): void {
  if (json) throw badOption("--tty", "and `--json` cannot be combined");
  if (timeoutMs !== undefined) throw badOption("--timeout", "and `--tty` cannot be combined");
  if (stdin.isTTY === true && stdout.isTTY === true) return;
  throw badOption("--tty", "needs a terminal for input and output; leave it out in a pipe");
}

function resetWithId(): Failure {
  return new Failure("`--reset` and `--id` cannot be combined.", {
    hint: "`--id` runs in an existing sandbox. Run `berth reset` to replace the checkout's.",
    code: "bad_usage",
  });
}

function outputLost(reason: string): Failure {
  return new Failure(`The output could not be written: ${reason}.`, {
    hint: "The command was ended. Free disk space and run it again.",
    code: "output_lost",
  });
}
