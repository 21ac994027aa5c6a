/**
 * Owns `berth reset`: a new sandbox in the place of the old one, in one step of the server.
 */
import { flag } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";

export const resetCommand = command({
  name: "reset",
  summary: "replace the sandbox by a new one, made by the configuration of now",
  about: "What the old one holds and this checkout does not is lost.",
  options: {
    wait: flag("--wait", "until it is ready and its set-up commands have run"),
    force: flag("--force", "also while somebody holds the old one"),
    config: sandboxOptions.config,
  },
  examples: [["After a change of .berth/sandbox.json", "berth reset --wait"]],
  async run(context, { options: { wait, force, config } }) {
    const how = { onExisting: "replace", force } as const;
    const found = await findSandbox(context, { ready: wait, ...how, config });
    const { id, view, replaced } = found;
    if (context.json)
      return void context.output.document({ old: replaced ?? null, new: id, sandbox: view });
    const place = replaced === undefined ? "there was none before" : `in place of ${replaced}`;
    context.output.line(`sandbox ${id} is ${view.state} (${place})`);
  },
});
