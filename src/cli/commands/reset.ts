/**
 * `berth reset`: replaces the checkout's sandbox by a new one, in one step of the server.
 */
import { flag } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";

export const resetCommand = command({
  name: "reset",
  summary: "Replace the sandbox by a new one",
  about:
    "The new one has the current configuration. Files of the old one that are not in this checkout are lost.",
  options: {
    wait: flag("--wait", "Wait until it is ready and its set-up commands have run"),
    force: flag("--force", "Even if somebody holds the old one's lease"),
    config: sandboxOptions.config,
  },
  examples: [["After a change of .berth/sandbox.json", "berth reset --wait"]],
  async run(context, { options: { wait, force, config } }) {
    const replace = { onExisting: "replace", force } as const;
    const found = await findSandbox(context, { ready: wait, ...replace, config });
    const { id, view, replaced } = found;
    if (context.json)
      return void context.output.printJson({ old: replaced ?? null, new: id, sandbox: view });
    const origin = replaced === undefined ? "there was none before" : `replaced ${replaced}`;
    context.output.print(`Sandbox ${id} is ${view.state} (${origin}).`);
  },
});
