/**
 * `berth kill`: ends a process, by name or id, with everything it started.
 */

import type { Process } from "../../protocol/process.ts";
import { wholeNumber } from "../args/option.ts";
import { required } from "../args/positional.ts";
import { checkProcessName } from "../args/process-name.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { findProcess } from "../find-process.ts";
import { findSandbox } from "../find-sandbox.ts";
import { Interrupts } from "../interrupts.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { interruptExitCode } from "../run/run.ts";

export const killCommand = command({
  name: "kill",
  summary: "End a process, by its name or id",
  about:
    "Sends TERM, and KILL after two seconds, to the process and to everything it started. Waits for the lease, as everything that changes the sandbox. The log stays. A process that has already ended is not a failure.",
  args: { process: required("process", "Name or id, as shown by `berth ps`") },
  options: {
    ...sandboxOptions,
    wait: wholeNumber("--wait <seconds>", "How long to wait for the lease (default: 3600)", {
      ...{ min: 0, max: 60 * 60 },
    }),
  },
  examples: [["The process that `berth run web -- npm start` started", "berth kill web"]],
  ownSignals: true,
  async run(context, { args, options: { wait, ...options } }) {
    checkProcessName(args.process);
    const which = parseSandboxOptions(options);
    using interrupts = new Interrupts();
    const { requested: signal } = interrupts;
    try {
      const { sandbox, id } = await findSandbox(context, {
        ...{ ...which, signal, make: false, ready: false },
      });
      const found = await findProcess(sandbox, args.process);
      if (found.state === "exited") return printResult(context, id, found, true);
      const waitMs = wait === undefined ? undefined : wait * 1000;
      await using lease = await acquireLease(context, sandbox, { signal, waitMs });
      // Looked up again: meanwhile another process may have the name, and `endProcess` on an exited one would delete
      // its log.
      const current = await findProcess(sandbox, args.process);
      if (current.state === "exited") return printResult(context, id, current, true);
      context.progress.show(`Ending ${args.process}`);
      const ended = await sandbox.endProcess(current.id, { lease: lease.token });
      return printResult(context, id, ended, false);
    } catch (thrown) {
      return interruptExitCode(context, thrown, interrupts);
    }
  },
});

function printResult(
  { json, output, progress }: Context,
  sandbox: string,
  process: Process,
  hadEnded: boolean,
): number {
  progress.end();
  if (json) {
    output.printJson({ sandbox, process, hadEnded });
    return 0;
  }
  const { name, id, exitCode, signal } = process;
  const label = name === undefined ? id : `${name} (${id})`;
  const end = signal ?? `exit code ${exitCode}`;
  output.print(hadEnded ? `${label} had already ended: ${end}` : `${label} has ended: ${end}`);
  return 0;
}
