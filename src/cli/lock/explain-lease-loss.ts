/** Explains how a command lost its lease: the connection gives the reason, the sandbox's events say who took it. */
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/error-codes.ts";
import { Failure } from "../failure.ts";

const causes: Record<string, string> = {
  disconnected: "the connection to the server was cut for too long",
  expired: "the command did not renew it in time",
  broken: "broken by",
  forced: "forced by",
  destroyed: "the sandbox was destroyed",
  revoked: "the token that held it was revoked",
};
const eventsTimeoutMs = 2_000;

/** Other errors are returned as they are. */
export async function explainLeaseLoss(
  thrown: unknown,
  sandbox: SandboxHandle,
  fence: number | undefined,
): Promise<unknown> {
  const known = asBerthError(thrown);
  const { reason } = known?.facts ?? {};
  if (known?.code !== "lease_lost" || typeof reason !== "string") return thrown;
  const wasTaken = reason === "broken" || reason === "forced";
  const by = wasTaken ? await findTaker(sandbox, fence) : undefined;
  const cause = wasTaken && by === undefined ? reason : (causes[reason] ?? reason);
  return new Failure(`The lease has ended: ${cause}${by === undefined ? "" : ` ${by}`}.`, {
    hint: "What ran under it was ended. Its changes are still in the sandbox: `berth pull` fetches them.",
    code: known.code,
    facts: { ...known.facts, by },
    cause: thrown,
  });
}

async function findTaker(sandbox: SandboxHandle, fence?: number): Promise<string | undefined> {
  try {
    let by: string | undefined;
    const signal = AbortSignal.timeout(eventsTimeoutMs);
    for await (const next of sandbox.events({ follow: false, signal })) {
      if (next.type !== "event" || next.event.type !== "lease") continue;
      const { what, fence: ended } = next.event;
      if (ended === fence && (what === "lost" || what === "ended")) by = next.event.by;
    }
    return by;
  } catch {
    // Explained without the name.
    return undefined;
  }
}
