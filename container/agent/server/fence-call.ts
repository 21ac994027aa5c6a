/**
 * Handles a fence call: raises the fence at once, ends the work below it if asked to, and reports what is left.
 * See gated-work.ts for how work ends.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentFence, AgentFenced } from "../../../src/protocol/internal/agent.ts";
import { readJson } from "./body.ts";
import type { GatedWork } from "./gated-work.ts";

type OrphanReaper = { reapOrphans(limitMs: number): Promise<void> };

export async function handleFence(
  request: Request,
  { gated, supervisor }: { gated: GatedWork; supervisor: OrphanReaper },
): Promise<Response> {
  const { fence, drain, waitMs } = await readJson<AgentFence>(request);
  const deadline = performance.now() + waitMs;
  // First of all: from here on nothing below the fence can begin, so what runs below it can only become less.
  gated.fence.raise(fence);
  if (drain) gated.endBelow(fence, leaseLost());
  const left = await gated.countBelow(fence, waitMs);
  if (left === 0) await supervisor.reapOrphans(deadline - performance.now());
  const fenced: AgentFenced = { fence: gated.fence.highest, left };
  return Response.json(fenced);
}

function leaseLost(): BerthError {
  return new BerthError(
    "operation_interrupted",
    "The lease of this command was lost; the command was ended.",
    {
      hint: "Files that it wrote before remain. Check them before you run it again.",
      facts: { admitted: true, reason: "lease_lost" },
    },
  );
}
