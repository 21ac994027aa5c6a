/**
 * Owns `berth push`: this checkout's state into its sandbox, and nothing else.
 * Does not own how it travels (sync/).
 */

import { flag } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";
import { takeLease } from "../lock/take-lease.ts";
import { size } from "../output/size.ts";
import { syncUp } from "../sync/index.ts";

export const pushCommand = command({
  name: "push",
  summary: "bring this checkout's state into the sandbox, run nothing",
  about:
    "Commit, branch, staged, unstaged and new files, as they are; ignored ones stay where they are.",
  options: {
    config: sandboxOptions.config,
    make: flag("--start", "make the sandbox if there is none"),
  },
  examples: [["Ahead of `berth attach`", "berth push"]],
  async run(context, { options: { config, make } }) {
    const found = await findSandbox(context, { config, make });
    if (found.checkout === undefined) return 1;
    await using lease = await takeLease(context, found.sandbox);
    const { sentBytes } = await syncUp(found.sandbox, found.checkout, {
      lease: lease.token,
      progress: (text) => context.progress.tell(text),
    });
    context.progress.end();
    if (context.json) context.output.document({ sandbox: found.id, sentBytes });
    else context.output.line(sentBytes === 0 ? "nothing has changed" : `sent ${size(sentBytes)}`);
    return 0;
  },
});
