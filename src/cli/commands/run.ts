/**
 * `berth run`: starts a command in the background under a name, and says when it is ready. See run/run.ts for the lease
 * and the checkout, run/start-background.ts for the wait.
 */
import type { SandboxHandle } from "../../client/index.ts";
import { environmentOption } from "../args/environment.ts";
import { badOption, text, wholeNumber } from "../args/option.ts";
import { optionalRest, required } from "../args/positional.ts";
import { checkNewName } from "../args/process-name.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findProcess } from "../find-process.ts";
import { type FoundSandbox, findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../interrupts.ts";
import { toCheckoutSync } from "../run/checkout-sync.ts";
import { interruptExitCode, sendCheckout, withLease } from "../run/run.ts";
import {
  type BackgroundCommand,
  type StartedProcess,
  startBackground,
} from "../run/start-background.ts";
import { toProgram, toVariables } from "../run/to-program.ts";

const readySeconds = 30;
const secondsMax = 60 * 60;
const portMax = 65_535;
const logCharsMax = 1024;

export const runCommand = command({
  name: "run",
  summary: "Run a command in the background, by name",
  about:
    "Sends the checkout as `berth exec` does, replaces the process of that name, and returns once the new one is ready: it listens on the port, has written the text, or otherwise is still running after half a second. If it exits earlier or the time is over, the command fails and prints the end of the log. No files are fetched, and the lease is released when it is ready. Without a command it repeats the last one of that name, in the same folder; give variables again.",
  args: {
    name: required("name", "Name: letters, digits, _ and -; one process at a time has it"),
    command: optionalRest("command", "Command to run and its arguments, after `--`"),
  },
  options: {
    port: wholeNumber("-p, --port <port>", "Ready when it accepts connections on this port", {
      ...{ min: 1, max: portMax },
    }),
    log: text("--log <text>", "Ready when it has written this text"),
    timeout: wholeNumber(
      "--timeout <seconds>",
      `How long it may take to be ready (default: ${readySeconds})`,
      {
        ...{ min: 1, max: secondsMax },
      },
    ),
    ...sandboxOptions,
    cwd: text("--cwd <folder>", "Working directory; relative to the top of the checkout"),
    env: environmentOption,
    wait: wholeNumber("--wait <seconds>", "How long to wait for the lease (default: 3600)", {
      ...{ min: 0, max: secondsMax },
    }),
  },
  examples: [
    ["A server, ready for the first request", "berth run web --port 3000 -- npm start"],
    ["Again, on the current files", "berth run web --port 3000"],
    [
      "A process that logs when it is ready",
      "berth run worker --log 'waiting for jobs' -- ./worker",
    ],
    ["Follow its log; end it", "berth logs web -f; berth kill web"],
  ],
  ownSignals: true,
  async run(context, { args, options }) {
    const { port, log, timeout = readySeconds, wait, cwd } = options;
    const name = checkNewName(args.name);
    if (log !== undefined && (log === "" || log.length > logCharsMax)) {
      throw badOption("--log", `must have 1 to ${logCharsMax} characters`);
    }
    const which = parseSandboxOptions(options);
    const variables = toVariables(context, options.env);
    const outputs = context.json ? [context.stdout] : [context.stdout, context.stderr];
    using interrupts = new Interrupts(...outputs);
    const waitMs = wait === undefined ? undefined : wait * 1000;
    const isRepeat = args.command.length === 0;
    try {
      const found = await findSandbox(context, {
        ...{ ...which, signal: interrupts.requested, waitMs },
        ...(isRepeat ? { make: false } : {}),
      });
      const { sandbox } = found;
      const program = isRepeat
        ? {
            ...(await findLastProgram(sandbox, name)),
            ...(cwd === undefined ? {} : { cwd }),
            ...variables,
          }
        : toProgram(context, found, args.command, options);
      const nameArgs = options.id === undefined ? name : `${name} --id ${options.id}`;
      const background: BackgroundCommand = {
        name,
        program,
        port,
        log,
        timeoutMs: timeout * 1000,
        nameArgs,
      };
      const checkoutSync = toCheckoutSync(context, found);
      const started = await withLease(
        context,
        { sandbox, interrupts, waitMs },
        async (lease, trace) => {
          const sent = await sendCheckout(
            context,
            { sandbox, interrupts, checkoutSync },
            lease,
            trace,
          );
          trace("run");
          const deps = { sandbox, lease: lease.token, interrupts };
          const running = await startBackground(context, background, deps).catch(
            (thrown: unknown) => {
              throw printOutput(context, thrown);
            },
          );
          trace("ran", { process: running.process.id });
          return { ...running, sync: sent === undefined ? null : { sentBytes: sent.sentBytes } };
        },
      );
      printStarted(context, found, started, nameArgs);
      return 0;
    } catch (thrown) {
      return interruptExitCode(context, thrown, interrupts);
    }
  },
});

/** Read singly, because a list shortens a long command. */
async function findLastProgram(
  sandbox: SandboxHandle,
  name: string,
): Promise<BackgroundCommand["program"]> {
  const { id } = await findProcessToRepeat(sandbox, name);
  const { command: line, argv, cwd, abridged } = await sandbox.process(id);
  if (abridged) {
    throw new Failure(`The command that ${name} ran is too long to be repeated.`, {
      hint: `Run \`berth run ${name} -- <command>\`.`,
      code: "no_process",
    });
  }
  return argv === undefined ? { command: line ?? "", cwd } : { argv, cwd };
}

async function findProcessToRepeat(sandbox: SandboxHandle, name: string) {
  try {
    return await findProcess(sandbox, name);
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown;
    throw new Failure(`There is no process \`${name}\` to run again.`, {
      hint: `Run \`berth run ${name} -- <command>\`.`,
      code: thrown.code,
    });
  }
}

/** Prints the end of the log; with `--json` it is in the document. */
function printOutput({ json, output, progress }: Context, thrown: unknown): unknown {
  const text = thrown instanceof Failure ? thrown.facts.output : undefined;
  if (json || typeof text !== "string" || text === "") return thrown;
  progress.end();
  output.info(text);
  return thrown;
}

function printStarted(
  { json, output }: Context,
  { id, drifted }: Pick<FoundSandbox, "id" | "drifted">,
  { process, replaced, readyMs, sync }: StartedProcess & { sync: { sentBytes: number } | null },
  nameArgs: string,
): void {
  if (json) {
    output.printJson({ sandbox: id, configChanged: drifted, process, replaced, readyMs, sync });
    return;
  }
  const { name = "" } = process;
  const replacement = replaced === null ? "" : `, in place of ${replaced}`;
  output.print(`${name} is running: process ${process.id}${replacement}`);
  output.info(
    `Follow it with \`berth logs ${nameArgs} -f\`, end it with \`berth kill ${nameArgs}\`.`,
  );
}
