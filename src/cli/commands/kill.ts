/**
 * Owns `berth kill`: the end of one process, by its name or id, with all that it started.
 * Does not own how a tree is ended: the sandbox's agent does that.
 */

import type { Process } from "../../protocol/process.ts";
import { whole } from "../args/option.ts";
import { required } from "../args/positional.ts";
import { checkProcessName } from "../args/process-name.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { findProcess } from "../find-process.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../live/interrupts.ts";
import { takeLease } from "../lock/take-lease.ts";
import { codeOfInterrupt } from "../run/run.ts";

export const killCommand = command({
  name: "kill",
  summary: "end a process, by its name or id",
  about:
    "TERM, and after two seconds KILL, to it and to all that it started. It waits for its turn, as everything that changes the sandbox. What it wrote stays, and one that has ended already is no failure.",
  args: { process: required("process", "its name or id, as `berth ps` shows them") },
  options: {
    ...sandboxOptions,
    wait: whole("--wait <seconds>", "how long to wait for others to finish (an hour)", {
      ...{ min: 0, max: 60 * 60 },
    }),
  },
  examples: [["What `berth run web -- npm start` has begun", "berth kill web"]],
  ownSignals: true,
  async run(context, { args, options: { wait, ...options } }) {
    checkProcessName(args.process);
    const which = readSandbox(options);
    using interrupts = new Interrupts();
    const { asked: signal } = interrupts;
    try {
      const { sandbox, id } = await findSandbox(context, {
        ...{ ...which, signal, make: false, ready: false },
      });
      const found = await findProcess(sandbox, args.process);
      if (found.state === "exited") return told(context, id, found, true);
      const waitMs = wait === undefined ? undefined : wait * 1000;
      await using lease = await takeLease(context, sandbox, { signal, waitMs });
      // Others may have worked meanwhile: another may have the name, and a call on one that has ended would forget it.
      const seen = await findProcess(sandbox, args.process);
      if (seen.state === "exited") return told(context, id, seen, true);
      context.progress.tell(`ending ${args.process}`);
      const ended = await sandbox.endProcess(seen.id, { lease: lease.token });
      return told(context, id, ended, false);
    } catch (thrown) {
      return codeOfInterrupt(context, thrown, interrupts);
    }
  },
});

function told(
  { json, output, progress }: Context,
  sandbox: string,
  process: Process,
  hadEnded: boolean,
): number {
  progress.end();
  if (json) {
    output.document({ sandbox, process, hadEnded });
    return 0;
  }
  const { name, id, exitCode, signal } = process;
  const who = name === undefined ? id : `${name} (${id})`;
  const how = signal ?? `exit code ${exitCode}`;
  output.line(hadEnded ? `${who} had ended already: ${how}` : `${who} has ended: ${how}`);
  return 0;
}
