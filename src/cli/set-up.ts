/**
 * Owns the set-up commands of a configuration: run once, in order, on the checkout's files, before the first use.
 * Does not own the files' way there (sync/).
 *
 * That they are still to be run is written down with the sandbox itself, in the step that makes it. Whoever finds it
 * so takes the lease, looks again, and runs them: also after the one who made it has gone.
 */
import { limits } from "../protocol/limits.ts";
import type { Checkout } from "./checkout/checkout.ts";
import type { Context } from "./context.ts";
import { Failure } from "./failure.ts";
import type { Found } from "./find-sandbox.ts";
import { type TakeOptions, takeLease } from "./lock/take-lease.ts";
import { syncUp } from "./sync/index.ts";

const setupKey = "berth.setup";

export const setupPending = { [setupKey]: "pending" };

/** Of its output, for people: the end tells why. */
const saidCharsMax = 4000;

export async function setUp(
  context: Context,
  found: Found,
  checkout: Checkout,
  { signal, waitMs }: TakeOptions,
): Promise<void> {
  const { sandbox, view, config, id } = found;
  const commands = config?.content.setup ?? [];
  if (view.metadata[setupKey] !== "pending" || commands.length === 0) return;
  await using lease = await takeLease(context, sandbox, { signal, waitMs });
  const { metadata } = await sandbox.metadata();
  if (metadata[setupKey] !== "pending") return;
  const progress = (text: string) => context.progress.tell(text);
  await syncUp(sandbox, checkout, {
    ...{ lease: lease.token, progress },
    ...(signal === undefined ? {} : { signal }),
  });
  for (const [at, command] of commands.entries()) {
    context.progress.tell(`set-up ${at + 1} of ${commands.length}: ${command}`);
    const result = await sandbox.exec(
      { command, timeoutMs: limits.execTimeoutMaxMs },
      { lease: lease.token, ...(signal === undefined ? {} : { signal }) },
    );
    if (result.exitCode !== 0) {
      const ended = result.timedOut
        ? "took longer than an hour"
        : `ended with ${result.exitCode ?? result.signal}`;
      context.progress.end();
      const output = `${result.stdout}${result.stderr}`.trimEnd().slice(-saidCharsMax);
      if (output !== "" && !context.json) context.output.say(output);
      throw new Failure(`set-up of sandbox ${id} failed: \`${command}\` ${ended}`, {
        hint: `\`berth exec --id ${id} -- …\` looks around in it; the next command here tries again.`,
        code: "setup_failed",
        facts: { sandbox: id, command, exitCode: result.exitCode, output },
      });
    }
  }
  await sandbox.patchMetadata({ [setupKey]: null });
}
