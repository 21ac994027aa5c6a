/**
 * Owns `berth resume`: wakes a paused sandbox, and waits until it runs.
 */
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";

export const resumeCommand = command({
  name: "resume",
  summary: "wake the paused sandbox",
  options: sandboxOptions,
  examples: [["Ahead of the next command", "berth resume"]],
  async run(context, { options }) {
    const { sandbox, id } = await findSandbox(context, {
      ...readSandbox(options),
      ...{ make: false, ready: false },
    });
    context.progress.tell(`waking ${id}`);
    await sandbox.start();
    const view = await sandbox.waitUntilRunning();
    context.progress.end();
    if (context.json) context.output.document({ sandbox: view });
    else context.output.line(`sandbox ${id} is ${view.state}`);
  },
});
