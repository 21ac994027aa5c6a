/** `berth pull`: fetches what the sandbox has changed, from any terminal or command. */
import { waitOption } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { readCheckout } from "../checkout/checkout.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";
import { acquireLease } from "../lock/acquire-lease.ts";
import { printPulled, pullDocument } from "../run/report.ts";
import { toPullOutcome } from "../run/run.ts";
import { pullNow } from "../sync/pull-now.ts";

export const pullCommand = command({
  name: "pull",
  summary: "Fetch what was changed in the sandbox",
  about:
    "For work in a terminal, by `berth cp`, by `--no-pull` or after a restored checkpoint. Sends nothing. A file that changed here meanwhile stays; the sandbox's version is saved next to it.",
  options: { ...sandboxOptions, waitMs: waitOption },
  examples: [["After `berth attach`", "berth pull"]],
  ownSignals: true,
  async run(context, { options: { id, config, waitMs } }) {
    const { output, interrupts, progress } = context;
    const which = id === undefined ? { config } : { id };
    const { folder } = readCheckout(context.cwd, false);
    const found = await findSandbox(context, { ...which, make: false });
    await using lease = await acquireLease(context, found.sandbox, waitMs);
    progress.show("Fetching what the sandbox has changed");
    const signal = AbortSignal.any([interrupts.requested, lease.lost]);
    const { restoredAt } = found.view;
    const options = { lease: lease.token, signal, restoredAt };
    const outcome = await toPullOutcome(pullNow(found.sandbox, folder, options));
    progress.end();
    signal.throwIfAborted();
    if (outcome.status === "failed") throw outcome.thrown;
    if (context.json) output.printJson({ sandbox: found.id, pull: pullDocument(outcome) });
    else printPulled(output, found.id, outcome);
    const isNothing = outcome.status === "done" && outcome.changed.length === 0;
    if (isNothing && !context.json) output.info("Nothing to fetch.");
    return outcome.status === "done" ? 0 : 1;
  },
});
