/**
 * Owns the choice between the two ways to a container: the platform's where one is attached, else the engine's.
 */
import { BerthError } from "../protocol/errors.ts";
import type { Network } from "../protocol/sandbox.ts";
import { platformContainer } from "./cloudflare.ts";
import { egressOf } from "./egress.ts";
import { engineContainer } from "./engine.ts";
import type { Container } from "./runtime.ts";
import type { Timer } from "./timeout.ts";

/** Of the object: what the platform has attached to it, and the entries of its Worker. */
type Place = Pick<DurableObjectState, "container" | "exports" | "id">;

export function openContainer(
  place: Place,
  engine: { url: string; secret: string } | undefined,
  id: string,
  network: Network,
  timer?: Timer,
): Container {
  const { container: attached } = place;
  if (attached !== undefined) {
    return platformContainer(attached, egressOf(attached, network, place));
  }
  if (engine !== undefined) {
    return engineContainer({ id, baseUrl: engine.url, secret: engine.secret, timer });
  }
  throw new BerthError("unavailable", "No container is attached and no engine is configured.", {
    hint: "Set BERTH_ENGINE_URL, or deploy with containers.",
  });
}
