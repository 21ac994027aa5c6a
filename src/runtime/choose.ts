/** Chooses the runtime: the platform's if a container is attached to the object, otherwise the engine's. */
import { BerthError } from "../protocol/errors.ts";
import type { Size } from "../protocol/fields/size.ts";
import type { Network } from "../protocol/sandbox.ts";
import { cloudflareRuntime } from "./cloudflare.ts";
import { egressOf } from "./egress.ts";
import { engineRuntime } from "./engine.ts";
import type { ContainerRuntime } from "./runtime.ts";
import type { StartTimer } from "./timeout.ts";

/** The parts of an object's context that a runtime needs. */
type ObjectContext = Pick<DurableObjectState, "container" | "exports" | "id">;

export function chooseRuntime(
  context: ObjectContext,
  engine: { url: string; secret: string } | undefined,
  id: string,
  network: Network,
  startTimer?: StartTimer,
  instance?: Size["instance"],
): ContainerRuntime {
  const { container: attached } = context;
  if (attached !== undefined) {
    return cloudflareRuntime(
      attached,
      egressOf(attached, network, context, id),
      startTimer,
      instance,
    );
  }
  if (engine !== undefined) {
    return engineRuntime({ id, baseUrl: engine.url, secret: engine.secret, startTimer });
  }
  throw new BerthError("unavailable", "No container is attached and no engine is configured.", {
    hint: "Set BERTH_ENGINE_URL, or deploy with containers.",
  });
}
