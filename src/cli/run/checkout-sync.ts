/**
 * How a run sends its checkout and fetches the changes, with progress shown to the user. See sync/ for how files
 * travel.
 */

import type { SandboxHandle } from "../../client/index.ts";
import type { Context } from "../context.ts";
import type { FoundSandbox } from "../find-sandbox.ts";
import { type Baseline, type PullResult, pull, syncUp } from "../sync/sync.ts";

type SyncCallOptions = { lease: string; signal: AbortSignal };

export type SentCheckout<Baseline> = { sentBytes: number; baseline: Baseline };

/** `up` runs before the command, `pull` after it. */
export interface CheckoutSync<Baseline> {
  up(sandbox: SandboxHandle, options: SyncCallOptions): Promise<SentCheckout<Baseline>>;
  pull(sandbox: SandboxHandle, baseline: Baseline, options: SyncCallOptions): Promise<PullResult>;
}

/** Undefined if the sandbox was given by id: its files are not this checkout's. */
export function toCheckoutSync(
  { progress }: Context,
  { checkout }: Pick<FoundSandbox, "checkout">,
): CheckoutSync<Baseline> | undefined {
  if (checkout === undefined) return undefined;
  return {
    up: (sandbox, options) =>
      syncUp(sandbox, checkout, { ...options, progress: (text) => progress.show(text) }),
    pull: (sandbox, baseline, options) => pull(sandbox, checkout, baseline, options),
  };
}
