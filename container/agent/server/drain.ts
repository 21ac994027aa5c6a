/**
 * Owns the answer to a fence call: the fence grows at once, what stands below it ends, and none left is confirmed.
 * Does not own how work ends (gated-work.ts), nor what the object makes of a missing confirmation.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentFence, AgentFenced } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { readJson } from "./body.ts";
import { callOf, numberOf, refuse } from "./fields.ts";
import type { GatedWork } from "./gated-work.ts";

/** What work has left behind, of all trees. */
type Remains = { collect(limitMs: number): Promise<void> };

export async function answerFence(
  request: Request,
  { gated, forest }: { gated: GatedWork; forest: Remains },
): Promise<Response> {
  const { fence, drain, waitMs } = readFence(await readJson(request));
  const deadline = performance.now() + waitMs;
  // Before anything else: from here on nothing below it begins, so what is below can only become less.
  gated.fence.raise(fence);
  if (drain) gated.interruptBelow(fence, leaseLost());
  const left = await gated.leftBelow(fence, waitMs);
  if (left === 0) await forest.collect(deadline - performance.now());
  const fenced: AgentFenced = { fence: gated.fence.highest, left };
  return Response.json(fenced);
}

function readFence(value: unknown): AgentFence {
  const call = callOf(value, ["fence", "drain", "waitMs"]);
  const { drain } = call;
  if (typeof drain !== "boolean") refuse("drain", "must be true or false");
  return {
    fence: numberOf(call.fence, "fence", { min: 0, max: Number.MAX_SAFE_INTEGER }),
    drain,
    waitMs: numberOf(call.waitMs, "waitMs", { min: 0, max: limits.leaseDrainMs }),
  };
}

function leaseLost(): BerthError {
  return new BerthError(
    "operation_interrupted",
    "the lease of this command was lost; the command was ended",
    {
      hint: "files written before stay; look at them before you run it again",
      facts: { admitted: true, reason: "lease_lost" },
    },
  );
}
