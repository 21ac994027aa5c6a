/**
 * Runs the set-up commands of a configuration: once, in order, on the checkout's files, before the first use.
 * The step that creates the sandbox records in its metadata that they are pending. The next command that finds this
 * takes the lease, checks again, and runs them, even if the creator has ended.
 */
import { limits } from "../protocol/limits.ts";
import type { Checkout } from "./checkout/checkout.ts";
import type { Context } from "./context.ts";
import { Failure } from "./failure.ts";
import type { FoundSandbox } from "./find-sandbox.ts";
import { acquireLease } from "./lock/acquire-lease.ts";
import { syncUp } from "./sync/sync.ts";

const setupKey = "berth.setup";

export const setupPending = { [setupKey]: "pending" };

/** How much of the end of the output is printed. */
const outputCharsMax = 4000;

export async function runSetup(
  context: Context,
  found: FoundSandbox,
  checkout: Checkout,
  waitMs: number | undefined,
): Promise<void> {
  const { sandbox, view, config, id } = found;
  const commands = config?.content.setup ?? [];
  if (view.metadata[setupKey] !== "pending" || commands.length === 0) return;
  const signal = context.interrupts.requested;
  await using lease = await acquireLease(context, sandbox, waitMs);
  const { metadata } = await sandbox.metadata();
  if (metadata[setupKey] !== "pending") return;
  const progress = (text: string) => context.progress.show(text);
  await syncUp(sandbox, checkout, { lease: lease.token, progress, signal });
  for (const [index, command] of commands.entries()) {
    context.progress.show(`Set-up ${index + 1} of ${commands.length}: ${command}`);
    const result = await sandbox.exec(
      { command, timeoutMs: limits.execTimeoutMaxMs },
      { lease: lease.token, signal },
    );
    if (result.exitCode !== 0) {
      const ended = result.timedOut
        ? "took longer than an hour"
        : `exited with ${result.exitCode ?? result.signal}`;
      context.progress.end();
      const output = `${result.stdout}${result.stderr}`.trimEnd().slice(-outputCharsMax);
      if (output !== "" && !context.json) context.output.info(output);
      throw new Failure(`Set-up of sandbox ${id} failed: \`${command}\` ${ended}.`, {
        hint: `Inspect it with \`berth exec --id ${id} -- …\`. The next command in this checkout runs the set-up again.`,
        code: "setup_failed",
        facts: { sandbox: id, command, exitCode: result.exitCode, output },
      });
    }
  }
  await sandbox.patchMetadata({ [setupKey]: null });
}
