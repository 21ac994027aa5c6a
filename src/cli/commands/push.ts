/** `berth push`: sends the state of this checkout to its sandbox and runs nothing. */
import { flag } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { formatSize } from "../output/format.ts";
import { toKeptDocument } from "../run/report-kept.ts";
import { sendCheckout } from "../run/run.ts";

export const pushCommand = command({
  name: "push",
  summary: "Send this checkout to its sandbox, run nothing",
  about:
    "Sends commit, branch, staged, unstaged and new files. Ignored files stay as they are, here and there.",
  options: {
    config: sandboxOptions.config,
    make: flag("--start", "Create the sandbox if there is none"),
  },
  examples: [["Before `berth attach`", "berth push"]],
  async run(context, { options: { config, make } }) {
    const found = await findSandbox(context, { config, make });
    if (found.checkout === undefined) return 1;
    await using lease = await acquireLease(context, found.sandbox);
    const sent = await sendCheckout(context, found, lease);
    if (sent === undefined) return 1;
    const { sentBytes } = sent;
    const kept = toKeptDocument(sent);
    const text = sentBytes === 0 ? "Nothing has changed." : `Sent ${formatSize(sentBytes)}.`;
    context.output.printResult({ sandbox: found.id, sentBytes, kept }, text);
    return 0;
  },
});
