/**
 * Asks the engine why an incarnation has ended. Without an answer in time the container counts as lost.
 */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { limits } from "../../../protocol/limits.ts";
import type { FailReason } from "../../../protocol/sandbox.ts";
import { withTimeout } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";

export async function findLossReason(actor: SandboxActor, agent: Incarnation): Promise<FailReason> {
  const { host, container } = actor;
  const [startId = ""] = agent.incarnation.split(".");
  // The engine waits this long for the end, in case the agent only seems to be gone; the response takes some more.
  const exitReport = withTimeout(
    host,
    container.monitor(startId, limits.endReasonWaitMs),
    2 * limits.endReasonWaitMs,
  );
  const exit = await exitReport.catch(() => undefined);
  if (exit === undefined) return "container_lost";
  const { reason, signal } = exit;
  const exitCode = exit.exitCode ?? undefined;
  host.log({
    sandbox: actor.existing?.sandbox.spec.id,
    startId,
    lost: reason,
    exitCode,
    ...(signal === null ? {} : { signal }),
  });
  return reason === "out_of_memory" ? reason : "container_lost";
}
