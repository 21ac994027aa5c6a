/** `berth pause` ends the sandbox's processes and keeps its files; `berth resume` wakes it. */
import { flag } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findExistingSandbox } from "../find-sandbox.ts";

export const pauseCommand = command({
  name: "pause",
  summary: "End the sandbox's processes, keep its files",
  group: "Sandbox",
  about: "The next use wakes it.",
  options: {
    ...sandboxOptions,
    force: flag("--force", "Even if somebody holds its lease"),
    discardFiles: flag("--discard-files", "If files cannot be saved: pause without them"),
  },
  examples: [["Over the weekend", "berth pause"]],
  async run(context, { options }) {
    const { sandbox, id } = await findExistingSandbox(context, options);
    context.progress.show(`Saving ${id}`);
    const { force, discardFiles } = options;
    const view = await sandbox.stop({ force, discardFiles });
    context.progress.end();
    context.output.printResult({ sandbox: view }, `Sandbox ${id} is ${view.state}.`);
  },
});

export const resumeCommand = command({
  name: "resume",
  summary: "Wake the paused sandbox",
  options: sandboxOptions,
  examples: [["Before the next command", "berth resume"]],
  async run(context, { options }) {
    const { sandbox, id } = await findExistingSandbox(context, options);
    context.progress.show(`Waking ${id}`);
    await sandbox.start();
    const view = await sandbox.waitUntilRunning();
    context.progress.end();
    context.output.printResult({ sandbox: view }, `Sandbox ${id} is ${view.state}.`);
  },
});
