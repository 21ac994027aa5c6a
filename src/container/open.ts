/**
 * Owns the choice between the two ways to a container: the platform's where one is attached, else the engine's.
 */
import { BerthError } from "../protocol/errors.ts";
import type { Container } from "./container.ts";
import { engineContainer } from "./engine.ts";
import { platformContainer } from "./platform.ts";

export function openContainer(
  attached: DurableObjectState["container"],
  engine: { url: string; secret: string } | undefined,
  id: string,
): Container {
  if (attached !== undefined) return platformContainer(attached);
  if (engine !== undefined) {
    return engineContainer({ id, baseUrl: engine.url, secret: engine.secret });
  }
  throw new BerthError("unavailable", "No container is attached and no engine is configured.", {
    hint: "Set BERTH_ENGINE_URL, or deploy with containers.",
  });
}
