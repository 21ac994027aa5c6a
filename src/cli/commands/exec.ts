/**
 * Owns `berth exec`: its arguments, and what is told when it is over.
 * Does not own the order of a run (exec-flow/flow.ts).
 */
import { environmentOption } from "../args/environment.ts";
import { badOption, flag, notFlag, text, whole } from "../args/option.ts";
import { rest } from "../args/positional.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../live/interrupts.ts";
import { programOf } from "../run/program-of.ts";
import { documentOf, tell } from "../run/report.ts";
import { codeOfInterrupt, runFlow } from "../run/run.ts";
import { type Program, runProcess } from "../run/run-process.ts";
import { runTerminal } from "../run/run-terminal.ts";
import { Kept, PassedOn } from "../run/sinks.ts";
import { syncingOf } from "../run/sync-checkout.ts";

const secondsMax = 7 * 24 * 60 * 60;
const waitSecondsMax = 60 * 60;

export const execCommand = command({
  name: "exec",
  summary: "run a command on this checkout, in its sandbox",
  about:
    "The sandbox gets the checkout as it is now, staged and unstaged changes included; the command runs with live output and input, alone; what it changed comes back. With --id it runs on the files that are there: nothing is sent or fetched. The exit code is the command's.",
  args: { command: rest("command", "what to run, and its arguments") },
  options: {
    pull: notFlag("--no-pull", "leave what the command changes in the sandbox"),
    reset: flag("--reset", "begin with a new sandbox in place of the old one"),
    force: flag("--force", "with --reset: also while somebody holds the old one"),
    ...sandboxOptions,
    tty: flag("-t, --tty", "give it a terminal; else it reads nothing of what is typed"),
    cwd: text("--cwd <folder>", "where to run it; relative ones are below the top of the checkout"),
    env: environmentOption,
    timeout: whole("--timeout <seconds>", "end it after this long, with exit code 124", {
      min: 1,
      max: secondsMax,
    }),
    wait: whole("--wait <seconds>", "how long to wait for others to finish (an hour)", {
      min: 0,
      max: waitSecondsMax,
    }),
  },
  examples: [
    ["Run the tests on the changes of this moment", "berth exec -- npm test"],
    ["With input", "git log | berth exec -- wc -l"],
    ["What only a shell understands", "berth exec -- sh -c 'make && ls dist | wc -l'"],
    ["A program with a screen", "berth exec --tty -- vim README.md"],
    ["For a program", "berth exec --json -- make | jq .exitCode"],
  ],
  passThrough: true,
  ownSignals: true,
  async run(context, { args, options }) {
    // With --json only the document is output, and talk may be lost.
    const outputs = context.json ? [context.stdout] : [context.stdout, context.stderr];
    using interrupts = new Interrupts(...outputs);
    const { tty, timeout, wait } = options;
    if (tty) demandTerminal(context, timeout);
    if (options.reset && options.id !== undefined) throw noReset();
    if (options.force && !options.reset) throw badOption("--force", "is for --reset");
    const waitMs = wait === undefined ? undefined : wait * 1000;
    try {
      const found = await findSandbox(context, {
        ...readSandbox(options),
        ...{ signal: interrupts.asked, waitMs },
        ...(options.reset ? { onExisting: "replace" as const, force: options.force } : {}),
      });
      const program: Program = {
        ...programOf(context, found, args.command, options),
        ...(timeout === undefined ? {} : { timeoutMs: timeout * 1000 }),
      };
      const kept = new Kept();
      const outcome = await runFlow(context, {
        ...{ sandbox: found.sandbox, syncing: syncingOf(context, found), pulls: options.pull },
        ...{ waitMs, interrupts },
        run: (lease) => {
          const { sandbox } = found;
          if (tty) return runTerminal(context, program, { sandbox, lease, interrupts });
          const sinks = context.json ? kept : new PassedOn(context);
          const { stdin } = context;
          const onConnection = (state: "lost" | "back") => tellConnection(context, state);
          return runProcess(program, {
            ...{ sandbox, lease, interrupts, stdin, sinks, onConnection },
            onSlowEnd: () => tellSlowEnd(context),
          });
        },
      });
      if (context.json) context.output.document(documentOf(found, outcome, kept.document()));
      else tell(context, found, outcome, program.timeoutMs);
      const unwritten = interrupts.first?.unwritten;
      if (unwritten !== undefined) throw notWritten(unwritten);
      return outcome.code;
    } catch (thrown) {
      return codeOfInterrupt(context, thrown, interrupts);
    }
  },
});

function demandTerminal({ stdin, stdout, json }: Context, timeout: number | undefined): void {
  if (json) throw badOption("--tty", "shows a screen, and --json one document: use one of them");
  if (timeout !== undefined) throw badOption("--timeout", "is for commands without --tty");
  if (stdin.isTTY === true && stdout.isTTY === true) return;
  throw badOption("--tty", "needs a terminal on both ends: leave it out in a pipe");
}

function noReset(): Failure {
  return new Failure("--reset and --id cannot be said together", {
    hint: "--id names one sandbox, and runs in that; `berth reset` replaces the one of a checkout.",
    code: "bad_usage",
  });
}

function tellConnection({ output, json }: Context, state: "lost" | "back"): void {
  if (json) return;
  output.say(state === "lost" ? "connection lost; trying again" : "connected again");
}

/** Ten seconds are long for somebody who has pressed Ctrl-C. */
function tellSlowEnd({ output, json }: Context): void {
  if (!json) output.say("it was asked to end and goes on; Ctrl-C again ends it");
}

function notWritten(why: string): Failure {
  return new Failure(`the output could not be written: ${why}`, {
    hint: "The command was ended then: make room, and run it again.",
    code: "output_lost",
  });
}
