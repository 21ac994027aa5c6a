/**
 * Chooses how sandboxes reach the internet on this machine, phrases what does not work, and connects each sandbox.
 * See nat.ts and pasta.ts for the modes.
 */
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import type { Engine } from "../engine.ts";
import { log, messageOf } from "../log.ts";
import { isProgram } from "../run.ts";
import type { NetworkMode, Settings } from "../settings.ts";
import { connectNat, prepareNat, removeNat } from "./nat.ts";
import { connectPasta, pastaNameServer } from "./pasta.ts";

export type NetworkChoice = {
  mode: NetworkMode;
  /** Shown with each sandbox that requested internet. */
  notes: string[];
  /** Shown in the engine's health. */
  missing: string[];
};

const hostNetworkWarning =
  "The sandbox shares the machine's network: it can reach every service on the machine's loopback.";

export async function chooseNetwork(settings: Settings, instance: string): Promise<NetworkChoice> {
  const requested = settings.network;
  if (requested === "host")
    return { mode: "host", notes: [hostNetworkWarning], missing: [hostNetworkWarning] };
  if (requested === "none") return noNetwork("BERTH_ENGINE_NETWORK is none");
  const nat =
    requested === "pasta" ? "not requested" : await prepareNatIfPossible(settings, instance);
  if (nat === undefined) return { mode: "nat", notes: [], missing: [] };
  if (requested === "nat") throw new Error(`BERTH_ENGINE_NETWORK: nat is unavailable: ${nat}`);
  const pasta = pastaObstacle();
  if (pasta === undefined) return { mode: "pasta", notes: [], missing: [] };
  if (requested === "pasta")
    throw new Error(`BERTH_ENGINE_NETWORK: pasta is unavailable: ${pasta}`);
  return noNetwork(`nat: ${nat}; pasta: ${pasta}`);
}

function noNetwork(why: string): NetworkChoice {
  return {
    mode: "none",
    notes: [`internet: This machine cannot connect sandboxes (${why}); only loopback works.`],
    missing: [`Sandboxes cannot reach the internet: ${why}.`],
  };
}

/** Prepares NAT, and returns undefined, or why it is unavailable. */
async function prepareNatIfPossible(
  settings: Settings,
  instance: string,
): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return "Berth is not root";
  const absent = ["ip", "nft"].filter((name) => !isProgram(name));
  if (absent.length > 0)
    return `${absent.join(" and ")} not installed (packages iproute2, nftables)`;
  try {
    await prepareNat(instance, settings.subnet, nameServersIn(resolvConf("nat")));
    return undefined;
  } catch (error) {
    log("nat_unavailable", { why: messageOf(error) });
    return messageOf(error);
  }
}

/** Returns undefined, or why pasta is unavailable. */
function pastaObstacle(): string | undefined {
  if (process.getuid?.() === 0) return "it cannot join a namespace of root";
  if (!isProgram("pasta")) return "it is not installed (package passt)";
  try {
    accessSync(tunDevice, constants.R_OK | constants.W_OK);
    return undefined;
  } catch {
    return `Berth's user may not open ${tunDevice}`;
  }
}

const tunDevice = "/dev/net/tun";

/** The resolv.conf of a sandbox: the machine's name servers without those on its loopback. */
export function resolvConf(mode: NetworkMode): string {
  const files = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
  for (const file of files.filter((it) => existsSync(it))) {
    const lines = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => /^\s*(nameserver|search|options)\s/.test(line))
      .filter((line) => mode === "host" || !/^\s*nameserver\s+(127\.|::1)/.test(line));
    if (lines.some((line) => line.includes("nameserver"))) return `${lines.join("\n")}\n`;
  }
  return mode === "pasta" ? `nameserver ${pastaNameServer}\n` : "";
}

function nameServersIn(text: string): string[] {
  return [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
}

export type Connection = { close(): void };

/** Connects a starting sandbox, whose agent has made its network namespace. */
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
