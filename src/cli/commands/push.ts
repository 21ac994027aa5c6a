/** `berth push`: sends the state of this checkout to its sandbox and runs nothing. */
import { flag } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { formatSize } from "../output/format.ts";
import { syncUp } from "../sync/sync.ts";

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
    const { sentBytes } = await syncUp(found.sandbox, found.checkout.folder, {
      lease: lease.token,
      progress: (text) => context.progress.show(text),
    });
    context.progress.end();
    const text = sentBytes === 0 ? "Nothing has changed." : `Sent ${formatSize(sentBytes)}.`;
    context.output.printResult({ sandbox: found.id, sentBytes }, text);
    return 0;
  },
});
