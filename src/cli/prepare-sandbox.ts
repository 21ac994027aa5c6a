/** Waits until a sandbox is ready, and runs the set-up commands of its configuration before the first use. */
import { setTimeout as sleep } from "node:timers/promises";
import { limits } from "../protocol/limits.ts";
import type { Sandbox } from "../protocol/sandbox.ts";
import type { Checkout } from "./checkout/checkout.ts";
import type { Context } from "./context.ts";
import { Failure } from "./failure.ts";
import type { FoundSandbox } from "./find-sandbox.ts";
import { acquireLease } from "./lock/acquire-lease.ts";
import { reportKept } from "./run/report-kept.ts";
import { syncUp } from "./sync/sync.ts";

const pollMs = 250;
/** Longer than any start may take. */
const readyTimeoutMs = 5 * 60_000;

export async function waitUntilReady(
  { progress, interrupts }: Context,
  { sandbox, view, made, replaced }: FoundSandbox,
): Promise<Sandbox> {
  const signal = interrupts.requested;
  const limit = Date.now() + readyTimeoutMs;
  let current = view;
  // Paused and restartable sandboxes are ready: their first use starts them.
  while (current.state === "starting" || current.state === "pausing") {
    progress.show(`${made ? "Creating" : "Waiting for"} sandbox ${current.id}: ${current.state}`);
    if (Date.now() > limit) {
      throw new Failure(`Sandbox ${current.id} is not ready after 5 minutes.`, {
        hint: "Run `berth list` to see its state. Run the command again to wait longer.",
        code: "not_ready",
      });
    }
    await sleep(pollMs, undefined, { signal });
    current = await sandbox.get({ signal });
  }
  if (current.state === "destroying" || current.state === "destroyed") {
    throw new Failure(
      `Sandbox ${current.id} was destroyed meanwhile: ${current.reason ?? "no reason given"}.`,
      { hint: "Run the command again to get a new one.", code: "sandbox_destroyed" },
    );
  }
  if (current.state === "failed" && current.restartable !== true) throw sandboxFailed(current);
  return replaced === undefined ? current : { ...current, replaced };
}

const reasons: Record<string, string> = {
  image_missing: "its image does not exist",
  start_timed_out: "its container did not start in time",
  start_refused: "its container could not be started",
  snapshot_missing: "its saved files are missing",
  out_of_memory: "it ran out of memory three times",
  restarted_too_often: "it was lost too often in a short time",
  disk_full: "the disk is full",
};

function sandboxFailed({ id, reason = "failed" }: Sandbox): Failure {
  return new Failure(`Sandbox ${id} has failed: ${reasons[reason] ?? reason}.`, {
    hint: "Run `berth resume` to start it again with its files.",
    code: "sandbox_failed",
    facts: { sandbox: id, reason },
  });
}

const setupKey = "berth.setup";

export const setupPending = { [setupKey]: "pending" };

/** How much of the end of the output is printed. */
const outputCharsMax = 4000;

/**
 * Runs the set-up commands once, in order, on the checkout's files. The step that creates the sandbox records in its
 * metadata that they are pending. The next command that finds this takes the lease, checks again, and runs them, even
 * if the creator has ended.
 */
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
  const { metadata } = await sandbox.metadata.get();
  if (metadata[setupKey] !== "pending") return;
  const progress = (text: string) => context.progress.show(text);
  const { restoredAt } = view;
  const options = { lease: lease.token, progress, signal, restoredAt };
  reportKept(context, await syncUp(sandbox, checkout.folder, options));
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
      const output = `${result.stdout}${result.stderr}`.trimEnd();
      const shown = lastLines(output);
      if (output !== "" && !context.json) context.output.info(...shown.split("\n"));
      throw new Failure(`Set-up of sandbox ${id} failed: \`${command}\` ${ended}.`, {
        hint: `Inspect it with \`berth exec --id ${id} -- …\`. The next command in this checkout runs the set-up again.`,
        code: "setup_failed",
        facts: { sandbox: id, command, exitCode: result.exitCode, output: shown },
      });
    }
  }
  await sandbox.metadata.patch({ [setupKey]: null });
}

/** From the beginning of a line; `…` stands for the lines before. */
function lastLines(output: string): string {
  if (output.length <= outputCharsMax) return output;
  const end = output.slice(-outputCharsMax);
  return `…\n${end.slice(end.indexOf("\n") + 1)}`;
}
