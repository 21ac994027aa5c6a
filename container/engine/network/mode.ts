/**
 * Owns which way out a sandbox with internet gets on this machine, and what to say of it.
 * Does not own making it: nat.ts and pasta.ts do.
 */
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { log, messageOf } from "../log.ts";
import { isProgram } from "../run.ts";
import type { NetworkMode, Settings } from "../settings.ts";
import { prepareNat } from "./nat.ts";
import { pastaNameServer } from "./pasta.ts";

export type NetworkChoice = {
  mode: NetworkMode;
  /** For each sandbox that asked for internet. */
  notes: string[];
  /** For the health of the whole engine. */
  missing: string[];
};

const hostOpens =
  "The sandbox shares the machine's network: every service on its loopback can be reached from inside.";

export async function chooseNetwork(settings: Settings, instance: string): Promise<NetworkChoice> {
  const asked = settings.network;
  if (asked === "host") return { mode: "host", notes: [hostOpens], missing: [hostOpens] };
  if (asked === "none") return noWayOut("BERTH_ENGINE_NETWORK is none");
  const nat = asked === "pasta" ? "not asked for" : await tryNat(settings, instance);
  if (nat === undefined) return { mode: "nat", notes: [], missing: [] };
  if (asked === "nat") throw new Error(`BERTH_ENGINE_NETWORK: nat cannot be had: ${nat}`);
  const pasta = tryPasta();
  if (pasta === undefined) return { mode: "pasta", notes: [], missing: [] };
  if (asked === "pasta") throw new Error(`BERTH_ENGINE_NETWORK: pasta cannot be had: ${pasta}`);
  return noWayOut(`nat: ${nat}; pasta: ${pasta}`);
}

function noWayOut(why: string): NetworkChoice {
  return {
    mode: "none",
    notes: [
      `internet: this machine has no way out for sandboxes (${why}); only loopback is there.`,
    ],
    missing: [`Sandboxes have no way to the internet: ${why}.`],
  };
}

/** Answers what stands against it. */
async function tryNat(settings: Settings, instance: string): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return "Berth is not root";
  const absent = ["ip", "nft"].filter((name) => !isProgram(name));
  if (absent.length > 0)
    return `${absent.join(" and ")} not installed (packages iproute2, nftables)`;
  try {
    await prepareNat(instance, settings.subnet);
    return undefined;
  } catch (error) {
    log("nat_unavailable", { why: messageOf(error) });
    return messageOf(error);
  }
}

/** Answers what stands against it. */
function tryPasta(): string | undefined {
  if (process.getuid?.() === 0) return "it does not join a namespace of root's";
  if (!isProgram("pasta")) return "it is not installed (package passt)";
  try {
    accessSync(tunDevice, constants.R_OK | constants.W_OK);
    return undefined;
  } catch {
    return `Berth's user may not open ${tunDevice}`;
  }
}

const tunDevice = "/dev/net/tun";

/** The name servers of a sandbox: the machine's own, but none that only its loopback has. */
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
