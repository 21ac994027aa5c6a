/**
 * Owns asking whoever ran a container why its life is over. Does not own finding that out (agent-link.ts), nor what it
 * means for the sandbox (core/sandbox). Who does not say in time, or does not know, is not waited for: it is lost.
 */
import type { Life } from "../../../core/sandbox/record.ts";
import { limits } from "../../../protocol/limits.ts";
import type { FailReason } from "../../../protocol/sandbox.ts";
import { inTime } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";

export async function whyLost(actor: SandboxActor, life: Life): Promise<FailReason> {
  const { host, container } = actor;
  const [startId = ""] = life.incarnation.split(".");
  // The life may seem to be over and not be: that takes the whole time, and the answer some more.
  const asked = inTime(host, container.monitor(startId, limits.endToldMs), 2 * limits.endToldMs);
  const exit = await asked.catch(() => undefined);
  if (exit === undefined) return "container_lost";
  const { reason, signal } = exit;
  const exitCode = exit.exitCode ?? undefined;
  host.log({
    sandbox: actor.known?.sandbox.spec.id,
    startId,
    lost: reason,
    exitCode,
    ...(signal === null ? {} : { signal }),
  });
  return reason === "out_of_memory" ? reason : "container_lost";
}
