/** `berth start` finds or creates the sandbox of the checkout; `berth reset` replaces it in one step of the server. */
import { badOption, choice, flag } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";

export const startCommand = command({
  name: "start",
  summary: "Create the sandbox of this checkout, or find it",
  about:
    "A sandbox belongs to a repository, branch and configuration: every machine finds the same one.",
  options: {
    wait: flag("--wait", "Wait until it is ready and its set-up commands have run"),
    onExisting: choice("--on-existing <what>", "What to do if there is one already", [
      "reuse",
      "replace",
      "error",
    ]),
    force: flag("--force", "With --on-existing replace: even if somebody holds its lease"),
    yes: flag("-y, --yes", "With replace: do not ask"),
    config: sandboxOptions.config,
  },
  examples: [
    ["Start it in the background", "berth start"],
    ["Ready for the first command", "berth start --wait"],
    ["With another configuration", "berth start --config ci/sandbox.json --wait"],
  ],
  async run(context, { options: { wait, onExisting, force, yes, config } }) {
    if (force && onExisting !== "replace")
      throw badOption("--force", "can only be used with `--on-existing replace`");
    const found = await findSandbox(context, { ready: wait, onExisting, force, yes, config });
    const { id, view, made, replaced, drifted } = found;
    const document = { sandbox: view, made, replaced: replaced ?? null, configChanged: drifted };
    const origin = replaced !== undefined ? `replaced ${replaced}` : made ? "created" : "found";
    context.output.printResult(document, `Sandbox ${id} is ${view.state} (${origin}).`);
  },
});

export const resetCommand = command({
  name: "reset",
  summary: "Replace the sandbox by a new one",
  about:
    "The new one has the current configuration. Where the old one has work that no checkout has, it asks first.",
  options: {
    wait: flag("--wait", "Wait until it is ready and its set-up commands have run"),
    force: flag("--force", "Even if somebody holds the old one's lease"),
    yes: flag("-y, --yes", "Do not ask, even if the old one has work that no checkout has"),
    config: sandboxOptions.config,
  },
  examples: [["After a change of .berth/sandbox.json", "berth reset --wait"]],
  async run(context, { options: { wait, force, yes, config } }) {
    const replacement = { ready: wait, onExisting: "replace", force, yes, config } as const;
    const { id, view, replaced } = await findSandbox(context, replacement);
    const document = { old: replaced ?? null, new: id, sandbox: view };
    const origin = replaced === undefined ? "there was none before" : `replaced ${replaced}`;
    context.output.printResult(document, `Sandbox ${id} is ${view.state} (${origin}).`);
  },
});
