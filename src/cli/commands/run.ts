/**
 * Owns `berth run`: what is to run in the background under a name, and what is told when it is ready.
 * Does not own the lease and the way of the checkout (exec-flow/flow.ts), nor the wait (exec-flow/run-named.ts).
 */
import type { SandboxHandle } from "../../client/index.ts";
import { environmentOption } from "../args/environment.ts";
import { badOption, text, whole } from "../args/option.ts";
import { optionalRest, required } from "../args/positional.ts";
import { checkNewName } from "../args/process-name.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { findProcess } from "../find-process.ts";
import { type Found, findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../live/interrupts.ts";
import { programOf, variablesOf } from "../run/program-of.ts";
import { alone, codeOfInterrupt, sentUp } from "../run/run.ts";
import { type Begun, type Named, runNamed } from "../run/run-named.ts";
import { syncingOf } from "../run/sync-checkout.ts";

const readySeconds = 30;
const secondsMax = 60 * 60;
const portMax = 65_535;
const logCharsMax = 1024;

export const runCommand = command({
  name: "run",
  summary: "run a command in the background, by name",
  about:
    "The sandbox gets the checkout as it is now, as for `berth exec`; what runs there under the name is ended, and the command starts in its place and goes on. It is ready when it listens on the port, has written the text, or else still runs after a moment. Where it exits before that, or the time is over, that is a failure, with the end of what it wrote. Nothing comes back, and the sandbox is free for others as soon as it is ready. Without a command it runs again, in the same folder, what runs under the name, or else what the newest of it ran; variables are to be given again.",
  args: {
    name: required("name", "letters, digits, _ and -; one process at a time has it"),
    command: optionalRest("command", "what to run, and its arguments, after `--`"),
  },
  options: {
    port: whole("-p, --port <port>", "it is ready when it takes connections there", {
      ...{ min: 1, max: portMax },
    }),
    log: text("--log <text>", "it is ready when it has written that"),
    timeout: whole("--timeout <seconds>", `how long that may take (${readySeconds})`, {
      ...{ min: 1, max: secondsMax },
    }),
    ...sandboxOptions,
    cwd: text("--cwd <folder>", "where to run it; relative ones are below the top of the checkout"),
    env: environmentOption,
    wait: whole("--wait <seconds>", "how long to wait for others to finish (an hour)", {
      ...{ min: 0, max: secondsMax },
    }),
  },
  examples: [
    ["A server, ready for the first request", "berth run web --port 3000 -- npm start"],
    ["Again, on the files of this moment", "berth run web --port 3000"],
    ["One that says so", "berth run worker --log 'waiting for jobs' -- ./worker"],
    ["What it writes; its end", "berth logs web -f; berth kill web"],
  ],
  ownSignals: true,
  async run(context, { args, options }) {
    const { port, log, timeout = readySeconds, wait, cwd } = options;
    const name = checkNewName(args.name);
    if (log !== undefined && (log === "" || log.length > logCharsMax)) {
      throw badOption("--log", `must be a text of 1 to ${logCharsMax} characters`);
    }
    const which = readSandbox(options);
    const variables = variablesOf(context, options.env);
    const outputs = context.json ? [context.stdout] : [context.stdout, context.stderr];
    using interrupts = new Interrupts(...outputs);
    const waitMs = wait === undefined ? undefined : wait * 1000;
    const isAgain = args.command.length === 0;
    try {
      const found = await findSandbox(context, {
        ...{ ...which, signal: interrupts.asked, waitMs },
        ...(isAgain ? { make: false } : {}),
      });
      const { sandbox } = found;
      const program = isAgain
        ? { ...(await lastOf(sandbox, name)), ...(cwd === undefined ? {} : { cwd }), ...variables }
        : programOf(context, found, args.command, options);
      const words = options.id === undefined ? name : `${name} --id ${options.id}`;
      const named: Named = { name, program, port, log, withinMs: timeout * 1000, words };
      const syncing = syncingOf(context, found);
      const begun = await alone(context, { sandbox, interrupts, waitMs }, async (lease, trace) => {
        const sent = await sentUp(context, { sandbox, interrupts, syncing }, lease, trace);
        trace("run");
        const around = { sandbox, lease: lease.token, interrupts };
        const running = await runNamed(context, named, around).catch((thrown: unknown) => {
          throw tellOutput(context, thrown);
        });
        trace("ran", { process: running.process.id });
        return { ...running, sync: sent === undefined ? null : { sentBytes: sent.sentBytes } };
      });
      tell(context, found, begun, words);
      return 0;
    } catch (thrown) {
      return codeOfInterrupt(context, thrown, interrupts);
    }
  },
});

/** Whole: a list shows only the beginning of a long one. */
async function lastOf(sandbox: SandboxHandle, name: string): Promise<Named["program"]> {
  const { id } = await findNamed(sandbox, name);
  const { command: line, argv, cwd, abridged } = await sandbox.process(id);
  if (abridged) {
    throw new Failure(`what ${name} ran is too long to be kept whole`, {
      hint: `Give it again: berth run ${name} -- <command>`,
      code: "no_process",
    });
  }
  return argv === undefined ? { command: line ?? "", cwd } : { argv, cwd };
}

async function findNamed(sandbox: SandboxHandle, name: string) {
  try {
    return await findProcess(sandbox, name);
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown;
    throw new Failure(`there is no process ${name} to run again`, {
      hint: `Say what to run: berth run ${name} -- <command>`,
      code: thrown.code,
    });
  }
}

/** As after a failed set-up: with `--json` it stands in the document. */
function tellOutput({ json, output, progress }: Context, thrown: unknown): unknown {
  const said = thrown instanceof Failure ? thrown.facts.output : undefined;
  if (json || typeof said !== "string" || said === "") return thrown;
  progress.end();
  output.say(said);
  return thrown;
}

function tell(
  { json, output }: Context,
  { id, drifted }: Pick<Found, "id" | "drifted">,
  { process, replaced, readyMs, sync }: Begun & { sync: { sentBytes: number } | null },
  words: string,
): void {
  if (json) {
    const how = { process, replaced, readyMs, sync };
    output.document({ sandbox: id, configChanged: drifted, ...how });
    return;
  }
  const { name = "" } = process;
  const how = replaced === null ? "" : `, in place of ${replaced}`;
  output.line(`${name} runs: process ${process.id}${how}`);
  output.say(`follow it: berth logs ${words} -f; end it: berth kill ${words}`);
}
