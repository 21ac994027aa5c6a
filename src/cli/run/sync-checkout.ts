/**
 * Owns which checkout a run brings along, and the progress that a person sees of it.
 * Does not own how files travel (sync/).
 */
import type { Context } from "../context.ts";
import type { Found } from "../find-sandbox.ts";
import { type Baseline, pull, syncUp } from "../sync/index.ts";
import type { Syncing } from "./syncing.ts";

/** Nothing where the sandbox was named by its id: its files are not this checkout's. */
export function syncingOf(
  { progress }: Context,
  { checkout }: Pick<Found, "checkout">,
): Syncing<Baseline> | undefined {
  if (checkout === undefined) return undefined;
  return {
    up: (sandbox, around) =>
      syncUp(sandbox, checkout, { ...around, progress: (text) => progress.tell(text) }),
    pull: (sandbox, baseline, around) => pull(sandbox, checkout, baseline, around),
  };
}
