/**
 * Owns the words for a lease that was lost under a command: what happened, and who did it, if anybody.
 * Does not own losing it. The connection tells the way of it alone; who and why stands in the sandbox's events.
 */
import type { SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import { Failure } from "../failure.ts";

const ways: Record<string, string> = {
  disconnected: "the server could not be reached for ten seconds",
  expired: "nothing was heard of this command for too long",
  broken: "broken by",
  forced: "forced by",
  destroyed: "the sandbox was destroyed",
  revoked: "the token by which it was held was revoked",
};
const answersWithinMs = 2_000;

/** Anything else is given back as it is. */
export async function inWordsOfLoss(
  thrown: unknown,
  sandbox: SandboxHandle,
  fence: number | undefined,
): Promise<unknown> {
  const known = asBerthError(thrown);
  const { reason } = known?.facts ?? {};
  if (known?.code !== "lease_lost" || typeof reason !== "string") return thrown;
  const isTaken = reason === "broken" || reason === "forced";
  const by = isTaken ? await whoTook(sandbox, fence) : undefined;
  const way = isTaken && by === undefined ? reason : (ways[reason] ?? reason);
  return new Failure(`The lease has ended: ${way}${by === undefined ? "" : ` ${by}`}.`, {
    hint: "What ran under it was ended. What it changed is in the sandbox until the next `berth exec`: `berth cp` fetches it.",
    code: known.code,
    facts: { ...known.facts, ...(by === undefined ? {} : { by }) },
    cause: thrown,
  });
}

async function whoTook(sandbox: SandboxHandle, fence?: number): Promise<string | undefined> {
  try {
    const asked = { limit: limits.eventsPageMax, answerWithinMs: answersWithinMs };
    const { events } = await sandbox.events(asked);
    const lost = events.findLast(
      ({ event }) =>
        event.type === "lease" &&
        event.fence === fence &&
        (event.what === "lost" || event.what === "ended"),
    );
    return lost?.event.type === "lease" ? lost.event.by : undefined;
  } catch {
    // It is said without.
    return undefined;
  }
}
