/**
 * Connects a starting sandbox to the network by the mode that the machine offers. The agent has made its network
 * namespace before.
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
  if (mode === "pasta") return await connectPasta(engine.folders.pastas, agentPid);
  return undefined;
}

/** Removes the engine's nft table; `ip_forward` stays on, because others may rely on it by now. */
export async function disconnectEngine(engine: Engine): Promise<void> {
  if (engine.machine.network.mode === "nat") await removeNat(engine.instance);
}
