/**
 * Owns `berth start`: the sandbox of the checkout, found or made.
 * Does not own how it is found (find-sandbox.ts).
 */
import { badOption, choice, flag } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";

export const startCommand = command({
  name: "start",
  summary: "make the sandbox of this checkout, or find it",
  about:
    "It belongs to the repository, the branch and the configuration: every machine finds the same one.",
  options: {
    wait: flag("--wait", "until it is ready and its set-up commands have run"),
    onExisting: choice("--on-existing <what>", "where there is one already", [
      "reuse",
      "replace",
      "error",
    ]),
    force: flag("--force", "with --on-existing replace: also while somebody holds the old one"),
    config: sandboxOptions.config,
  },
  examples: [
    ["Begin, and go on with other work", "berth start"],
    ["Ready for the first command", "berth start --wait"],
    ["Of another configuration", "berth start --config ci/sandbox.json --wait"],
  ],
  async run(context, { options: { wait, onExisting, force, config } }) {
    if (force && onExisting !== "replace")
      throw badOption("--force", "is for --on-existing replace");
    const found = await findSandbox(context, { ready: wait, onExisting, force, config });
    const { id, view, made, replaced, drifted } = found;
    const document = { sandbox: view, made, replaced: replaced ?? null, configChanged: drifted };
    if (context.json) return void context.output.document(document);
    const how = replaced !== undefined ? `in place of ${replaced}` : made ? "made" : "found";
    context.output.line(`sandbox ${id} is ${view.state} (${how})`);
  },
});
