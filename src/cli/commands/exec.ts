/**
 * `berth exec`: its options, and what it prints at the end. See run/run.ts for the order of a run.
 */
import { environmentOption } from "../args/environment.ts";
import { badOption, flag, notFlag, text, wholeNumber } from "../args/option.ts";
import { rest } from "../args/positional.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../interrupts.ts";
import { toCheckoutSync } from "../run/checkout-sync.ts";
import { CapturedOutput, StreamedOutput } from "../run/output-sinks.ts";
import { printReport, toRunDocument } from "../run/report.ts";
import { interruptExitCode, runInSandbox } from "../run/run.ts";
import { type Program, runProcess } from "../run/run-process.ts";
import { runTerminal } from "../run/run-terminal.ts";
import { toProgram } from "../run/to-program.ts";

const secondsMax = 7 * 24 * 60 * 60;
const waitSecondsMax = 60 * 60;

export const execCommand = command({
  name: "exec",
  summary: "Run a command on this checkout, in its sandbox",
  about:
    "Sends the checkout as it is now, with staged and unstaged changes, runs the command under the lease with live input and output, and fetches what it changed. With `--id` no files are sent or fetched. The exit code is the command's.",
  args: { command: rest("command", "Command to run, and its arguments") },
  options: {
    pull: notFlag("--no-pull", "Do not fetch what the command changes"),
    reset: flag("--reset", "Replace the sandbox by a new one first"),
    force: flag("--force", "With --reset: even if somebody holds its lease"),
    ...sandboxOptions,
    tty: flag("-t, --tty", "Run it in a terminal; otherwise it cannot read what is typed"),
    cwd: text("--cwd <folder>", "Working directory; relative to the top of the checkout"),
    env: environmentOption,
    timeout: wholeNumber("--timeout <seconds>", "End it after this time, with exit code 124", {
      min: 1,
      max: secondsMax,
    }),
    wait: wholeNumber("--wait <seconds>", "How long to wait for the lease (default: 3600)", {
      min: 0,
      max: waitSecondsMax,
    }),
  },
  examples: [
    ["Run the tests on the current changes", "berth exec -- npm test"],
    ["With input", "git log | berth exec -- wc -l"],
    ["With shell syntax", "berth exec -- sh -c 'make && ls dist | wc -l'"],
    ["A full-screen program", "berth exec --tty -- vim README.md"],
    ["Machine-readable output", "berth exec --json -- make | jq .exitCode"],
  ],
  passThrough: true,
  ownSignals: true,
  async run(context, { args, options }) {
    // With `--json` only the document counts; messages on stderr may be lost.
    const outputs = context.json ? [context.stdout] : [context.stdout, context.stderr];
    using interrupts = new Interrupts(...outputs);
    const { tty, timeout, wait } = options;
    if (tty) requireTerminal(context, timeout);
    if (options.reset && options.id !== undefined) throw resetWithId();
    if (options.force && !options.reset)
      throw badOption("--force", "can only be used with `--reset`");
    const waitMs = wait === undefined ? undefined : wait * 1000;
    try {
      const found = await findSandbox(context, {
        ...parseSandboxOptions(options),
        ...{ signal: interrupts.requested, waitMs },
        ...(options.reset ? { onExisting: "replace" as const, force: options.force } : {}),
      });
      const program: Program = {
        ...toProgram(context, found, args.command, options),
        ...(timeout === undefined ? {} : { timeoutMs: timeout * 1000 }),
      };
      const captured = new CapturedOutput();
      const outcome = await runInSandbox(context, {
        ...{
          sandbox: found.sandbox,
          checkoutSync: toCheckoutSync(context, found),
          pulls: options.pull,
        },
        ...{ waitMs, interrupts },
        run: (lease) => {
          const { sandbox } = found;
          if (tty) return runTerminal(context, program, { sandbox, lease, interrupts });
          const sinks = context.json ? captured : new StreamedOutput(context);
          const { stdin } = context;
          const onConnection = (state: "lost" | "back") => printConnection(context, state);
          return runProcess(program, {
            ...{ sandbox, lease, interrupts, stdin, sinks, onConnection },
            onSlowEnd: () => printSlowEnd(context),
          });
        },
      });
      if (context.json)
        context.output.printJson(toRunDocument(found, outcome, captured.document()));
      else printReport(context, found, outcome, program.timeoutMs);
      const unwritten = interrupts.first?.unwritten;
      if (unwritten !== undefined) throw outputLost(unwritten);
      return outcome.code;
    } catch (thrown) {
      return interruptExitCode(context, thrown, interrupts);
    }
  },
});

function requireTerminal({ stdin, stdout, json }: Context, timeout: number | undefined): void {
  if (json) throw badOption("--tty", "and `--json` cannot be combined");
  if (timeout !== undefined) throw badOption("--timeout", "and `--tty` cannot be combined");
  if (stdin.isTTY === true && stdout.isTTY === true) return;
  throw badOption("--tty", "needs a terminal for input and output; leave it out in a pipe");
}

function resetWithId(): Failure {
  return new Failure("`--reset` and `--id` cannot be combined.", {
    hint: "`--id` runs in an existing sandbox. Run `berth reset` to replace the checkout's.",
    code: "bad_usage",
  });
}

function printConnection({ output, json }: Context, state: "lost" | "back"): void {
  if (json) return;
  output.info(state === "lost" ? "Connection lost; reconnecting." : "Connected again.");
}

/** Ten seconds are long for a user who has pressed Ctrl-C. */
function printSlowEnd({ output, json }: Context): void {
  if (!json) output.info("The command has not ended yet. Press Ctrl-C again to kill it.");
}

function outputLost(reason: string): Failure {
  return new Failure(`The output could not be written: ${reason}.`, {
    hint: "The command was ended. Free disk space and run it again.",
    code: "output_lost",
  });
}
