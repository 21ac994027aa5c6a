/**
 * `berth resume`: wakes a paused sandbox and waits until it runs.
 */
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";

export const resumeCommand = command({
  name: "resume",
  summary: "Wake the paused sandbox",
  options: sandboxOptions,
  examples: [["Before the next command", "berth resume"]],
  async run(context, { options }) {
    const { sandbox, id } = await findSandbox(context, {
      ...parseSandboxOptions(options),
      ...{ make: false, ready: false },
    });
    context.progress.show(`Waking ${id}`);
    await sandbox.start();
    const view = await sandbox.waitUntilRunning();
    context.progress.end();
    if (context.json) context.output.printJson({ sandbox: view });
    else context.output.print(`Sandbox ${id} is ${view.state}.`);
  },
});
