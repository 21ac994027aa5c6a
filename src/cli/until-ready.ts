/**
 * Owns the wait until a sandbox can be used, and the words for why one cannot.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Sandbox } from "../protocol/sandbox.ts";
import type { Context } from "./context.ts";
import { Failure } from "./failure.ts";
import type { Found } from "./find-sandbox.ts";

const lookEveryMs = 250;
/** Longer than any start may take. */
const readyWithinMs = 5 * 60_000;

export async function untilReady(
  { progress }: Context,
  { sandbox, view, made, replaced }: Pick<Found, "sandbox" | "view" | "made" | "replaced">,
  signal?: AbortSignal,
): Promise<Sandbox> {
  const limit = Date.now() + readyWithinMs;
  let seen = view;
  // A paused one is woken by its first use, and so is a failed one that can be started again.
  while (seen.state === "starting" || seen.state === "pausing") {
    progress.tell(`${made ? "making" : "waiting for"} sandbox ${seen.id}: ${seen.state}`);
    if (Date.now() > limit) {
      throw new Failure(`sandbox ${seen.id} is not ready after 5 minutes`, {
        hint: "`berth list` shows its state, `berth reset` makes a new one.",
        code: "not_ready",
      });
    }
    await pause(lookEveryMs, undefined, signal === undefined ? {} : { signal });
    seen = await sandbox.get(signal === undefined ? {} : { signal });
  }
  if (seen.state === "destroying" || seen.state === "destroyed") {
    throw new Failure(
      `sandbox ${seen.id} was destroyed meanwhile: ${seen.reason ?? "no reason told"}`,
      {
        hint: "Run the same again to get a new one.",
        code: "sandbox_destroyed",
      },
    );
  }
  if (seen.state === "failed" && seen.restartable !== true) throw broken(seen);
  return { ...seen, ...(replaced === undefined ? {} : { replaced }) };
}

const reasons: Record<string, string> = {
  image_missing: "its image is not there",
  start_timed_out: "its container did not come up in time",
  start_refused: "its container could not be started",
  snapshot_missing: "its saved files are not there",
  out_of_memory: "it ran out of memory three times",
  restarted_too_often: "it was lost too often in a short time",
  disk_full: "the disk is full",
};

function broken({ id, reason = "failed" }: Sandbox): Failure {
  return new Failure(`sandbox ${id} has failed: ${reasons[reason] ?? reason}`, {
    hint: "`berth reset` makes a new one in its place.",
    code: "sandbox_failed",
    facts: { sandbox: id, reason },
  });
}
