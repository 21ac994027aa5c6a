/** `berth run`: starts a command in the background under a name, and says when it is ready. */
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import {
  badOption,
  optionalRest,
  required,
  seconds,
  text,
  waitOption,
  wholeNumber,
} from "../args/option.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { checkNewName, findProcess } from "../find-process.ts";
import { type FoundSandbox, findSandbox } from "../find-sandbox.ts";
import { sendCheckout, trace, withLease } from "../run/run.ts";
import {
  type BackgroundCommand,
  type StartedProcess,
  startBackground,
} from "../run/start-background.ts";
import { environmentOption, toProgram, toVariables, userOption } from "../run/to-program.ts";

const readySeconds = 30;
const readySecondsMax = 60 * 60;
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
      min: 1,
      max: 65_535,
    }),
    log: text("--log <text>", "Ready when it has written this text"),
    timeoutMs: seconds(
      "--timeout <seconds>",
      `How long it may take to be ready (default: ${readySeconds})`,
      { min: 1, max: readySecondsMax },
    ),
    ...sandboxOptions,
    cwd: text("--cwd <folder>", "Working directory; relative to the top of the checkout"),
    user: userOption,
    env: environmentOption,
    waitMs: waitOption,
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
    const { port, log, timeoutMs = readySeconds * 1000, waitMs, cwd, user, id } = options;
    const name = checkNewName(args.name);
    if (log !== undefined && (log === "" || log.length > logCharsMax)) {
      throw badOption("--log", `must have 1 to ${logCharsMax} characters`);
    }
    const which = parseSandboxOptions(options);
    const env = toVariables(context, options.env);
    context.interrupts.watchOutputs(context);
    const isRepeat = args.command.length === 0;
    const found = await findSandbox(context, { ...which, waitMs, make: !isRepeat });
    const { sandbox } = found;
    const last = isRepeat ? await findLastProgram(sandbox, name) : undefined;
    const program =
      last === undefined
        ? toProgram(context, found, args.command, options)
        : { ...last, cwd: cwd ?? last.cwd, env, user };
    const nameArgs = id === undefined ? name : `${name} --id ${id}`;
    const background = { name, program, port, log, timeoutMs, nameArgs };
    const started = await withLease(context, sandbox, waitMs, async (lease) => {
      const sent = await sendCheckout(context, found, lease);
      trace(context, "run");
      try {
        const running = await startBackground(context, background, sandbox, lease.token);
        trace(context, "ran", { process: running.process.id });
        return { ...running, sync: sent === undefined ? null : { sentBytes: sent.sentBytes } };
      } catch (thrown) {
        printOutput(context, thrown);
        throw thrown;
      }
    });
    printStarted(context, found, started, nameArgs);
    return 0;
  },
});

/** Read singly, because a list shortens a long command. */
async function findLastProgram(
  sandbox: SandboxHandle,
  name: string,
): Promise<BackgroundCommand["program"]> {
  const { id } = await findProcessToRepeat(sandbox, name);
  const { command: line, argv, cwd, abridged } = await sandbox.process(id).get();
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
function printOutput({ json, output, progress }: Context, thrown: unknown): void {
  const text = thrown instanceof Failure ? thrown.facts.output : undefined;
  if (json || typeof text !== "string" || text === "") return;
  progress.end();
  output.info(...text.split("\n"));
}

function printStarted(
  { json, output }: Context,
  { id, drifted }: Pick<FoundSandbox, "id" | "drifted">,
  { process, replaced, readyMs, sync }: StartedProcess & { sync: { sentBytes: number } | null },
  nameArgs: string,
): void {
  const document = { sandbox: id, configChanged: drifted, process, replaced, readyMs, sync };
  if (json) return void output.printJson(document);
  const { name = "" } = process;
  const replacement = replaced === null ? "" : `, in place of ${replaced}`;
  output.print(`${name} is running: process ${process.id}${replacement}`);
  output.info(
    `Follow it with \`berth logs ${nameArgs} -f\`, end it with \`berth kill ${nameArgs}\`.`,
  );
}
