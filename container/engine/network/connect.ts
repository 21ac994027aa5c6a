/**
 * Owns giving a sandbox that is born the way out that was chosen for it, and taking it away.
 * Does not own the sandbox's own namespace: the agent made it before it was ready.
 */
import type { Engine } from "../engine.ts";
import type { NetworkMode } from "../settings.ts";
import { connectNat, removeNat } from "./nat.ts";
import { connectPasta } from "./pasta.ts";

export type Connection = { close(): void };

export async function connect(
  engine: Engine,
  mode: NetworkMode,
  agentPid: number,
): Promise<Connection | undefined> {
  if (mode === "nat") return await connectNat(engine.instance, engine.settings.subnet, agentPid);
  if (mode === "pasta") return await connectPasta(engine.places.pastas, agentPid);
  return undefined;
}

/** What the engine itself changed of the machine's network. */
export async function disconnectEngine(engine: Engine): Promise<void> {
  if (engine.machine.network.mode === "nat") await removeNat(engine.instance);
}
