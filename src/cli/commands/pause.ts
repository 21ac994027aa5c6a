/**
 * `berth pause`: ends the sandbox's processes and keeps its files.
 */
import { flag } from "../args/option.ts";
import { parseSandboxOptions, sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";

export const pauseCommand = command({
  name: "pause",
  summary: "End the sandbox's processes, keep its files",
  about: "The next use wakes it.",
  options: {
    ...sandboxOptions,
    force: flag("--force", "Even if somebody holds its lease"),
    discardFiles: flag("--discard-files", "If files cannot be saved: pause without them"),
  },
  examples: [["Over the weekend", "berth pause"]],
  async run(context, { options: { force, discardFiles, ...which } }) {
    const { sandbox, id } = await findSandbox(context, {
      ...parseSandboxOptions(which),
      ...{ make: false, ready: false },
    });
    context.progress.show(`Saving ${id}`);
    const view = await sandbox.pause({ force, discardFiles });
    context.progress.end();
    if (context.json) context.output.printJson({ sandbox: view });
    else context.output.print(`Sandbox ${id} is ${view.state}.`);
  },
});
