/** Waits until a sandbox can be used, and says why one cannot. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "../protocol/sandbox.ts";
import type { Context } from "./context.ts";
import { Failure } from "./failure.ts";
import type { FoundSandbox } from "./find-sandbox.ts";

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
        hint: "Run `berth list` to see its state, or `berth reset` to replace it.",
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
  return { ...current, ...(replaced === undefined ? {} : { replaced }) };
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
    hint: "Run `berth reset` to replace it.",
    code: "sandbox_failed",
    facts: { sandbox: id, reason },
  });
}
