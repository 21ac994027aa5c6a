/**
 * Owns what a run needs of the checkout's way there and back: up before the command, down after it.
 * Does not own how (sync/), nor when (flow.ts).
 */
import type { SandboxHandle } from "../../client/index.ts";
import type { Pulled } from "../sync/index.ts";

export type { Pulled } from "../sync/index.ts";

export type Around = { lease: string; signal: AbortSignal };

export type SentUp<Baseline> = { sentBytes: number; baseline: Baseline };

export interface Syncing<Baseline> {
  up(sandbox: SandboxHandle, around: Around): Promise<SentUp<Baseline>>;
  pull(sandbox: SandboxHandle, baseline: Baseline, around: Around): Promise<Pulled>;
}
