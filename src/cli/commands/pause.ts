/**
 * Owns `berth pause`: its files stay, its processes end.
 */
import { flag } from "../args/option.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";

export const pauseCommand = command({
  name: "pause",
  summary: "end the sandbox's processes, keep its files; the next use wakes it",
  options: {
    ...sandboxOptions,
    force: flag("--force", "although somebody holds its lease"),
    discardFiles: flag("--discard-files", "where files cannot be saved: without them"),
  },
  examples: [["Over the weekend", "berth pause"]],
  async run(context, { options: { force, discardFiles, ...which } }) {
    const { sandbox, id } = await findSandbox(context, {
      ...readSandbox(which),
      ...{ make: false, ready: false },
    });
    context.progress.tell(`saving ${id}`);
    const view = await sandbox.pause({ force, discardFiles });
    context.progress.end();
    if (context.json) context.output.document({ sandbox: view });
    else context.output.line(`sandbox ${id} is ${view.state}`);
  },
});
