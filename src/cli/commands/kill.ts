/** `berth kill`: ends a process, by name or id, with everything it started. */
import type { Process } from "../../protocol/process.ts";
import { required, waitOption } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { checkProcessName, findProcess } from "../find-process.ts";
import { findExistingSandbox } from "../find-sandbox.ts";
import { acquireLease } from "../lock/acquire-lease.ts";

export const killCommand = command({
  name: "kill",
  summary: "End a process, by its name or id",
  about:
    "Sends TERM, and KILL after two seconds, to the process and to everything it started. Waits for the lease, as everything that changes the sandbox. The log stays. A process that has already ended is not a failure.",
  args: { process: required("process", "Name or id, as shown by `berth ps`") },
  options: { ...sandboxOptions, waitMs: waitOption },
  examples: [["The process that `berth run web -- npm start` started", "berth kill web"]],
  ownSignals: true,
  async run(context, { args, options }) {
    checkProcessName(args.process);
    const { sandbox, id } = await findExistingSandbox(context, options);
    const found = await findProcess(sandbox, args.process);
    if (found.state === "exited") return printEnd(context, id, found, true);
    await using lease = await acquireLease(context, sandbox, options.waitMs);
    // Looked up again: meanwhile another process may have the name, and `delete` on an exited one would delete
    // its log.
    const current = await findProcess(sandbox, args.process);
    if (current.state === "exited") return printEnd(context, id, current, true);
    context.progress.show(`Ending ${args.process}`);
    const ended = await sandbox.process(current.id).delete({ lease: lease.token });
    return printEnd(context, id, ended, false);
  },
});

function printEnd(
  { output, progress }: Context,
  sandbox: string,
  process: Process,
  hadEnded: boolean,
): undefined {
  progress.end();
  const { name, id, exitCode, signal } = process;
  const label = name === undefined ? id : `${name} (${id})`;
  const end = `${hadEnded ? "had already" : "has"} ended: ${signal ?? `exit code ${exitCode}`}`;
  output.printResult({ sandbox, process, hadEnded }, `${label} ${end}`);
}
