/**
 * Connects sandboxes by a veth pair and address translation, for an engine that runs as root. Sandboxes reach neither
 * each other nor the machine.
 *
 * It changes on the machine: one nft table per engine, `net.ipv4.ip_forward`, and one interface per sandbox.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { BerthError } from "../../../src/protocol/errors.ts";
import { log, messageOf } from "../log.ts";
import { run } from "../run.ts";
import type { Connection } from "./network.ts";

const stepTimeoutMs = 10_000;
const forwardSetting = "/proc/sys/net/ipv4/ip_forward";

/** All engines of a machine share this prefix, so that the rules also separate the sandboxes of different engines. */
const anyInterface = "brth*";

export async function prepareNat(
  instance: string,
  subnet: string,
  nameServers: string[],
): Promise<void> {
  await nft(`${removalScript(instance)}\n${ruleset(instance, subnet, nameServers)}`);
  if (readFileSync(forwardSetting, "utf8").trim() !== "1") writeFileSync(forwardSetting, "1");
}

export async function removeNat(instance: string): Promise<void> {
  await nft(removalScript(instance));
}

export async function connectNat(
  instance: string,
  subnet: string,
  agentPid: number,
): Promise<Connection> {
  const net = allocateSubnet(subnet);
  const name = `${prefixOf(instance)}${net.index.toString(36)}`;
  const close = () => {
    // The interface would disappear with its namespace, but later; its name and addresses are needed again now.
    run(["ip", "link", "delete", name], { timeoutMs: stepTimeoutMs })
      .catch(() => undefined)
      .finally(net.release);
  };
  try {
    await ip(
      [],
      [
        `link add ${name} type veth peer name eth0 netns ${agentPid}`,
        `addr add ${net.hostAddress}/30 dev ${name}`,
        `link set ${name} up`,
      ],
    );
    await ip(
      ["nsenter", `--net=/proc/${agentPid}/ns/net`, "--"],
      [
        `addr add ${net.sandboxAddress}/30 dev eth0`,
        "link set eth0 up",
        `route add default via ${net.hostAddress}`,
      ],
    );
  } catch (error) {
    log("nat_failed", { why: messageOf(error) });
    close();
    throw error;
  }
  return { close };
}

function prefixOf(instance: string): string {
  return `brth${instance.slice(0, 6)}`;
}

async function ip(before: string[], lines: string[]): Promise<void> {
  await run([...before, "ip", "-batch", "-"], {
    timeoutMs: stepTimeoutMs,
    stdin: `${lines.join("\n")}\n`,
  });
}

async function nft(text: string): Promise<void> {
  await run(["nft", "-f", "-"], { timeoutMs: stepTimeoutMs, stdin: `${text}\n` });
}

/** Sandboxes reach no link-local addresses, which cloud metadata has, but those of the machine's name servers. */
function ruleset(instance: string, subnet: string, nameServers: string[]): string {
  const own = `${prefixOf(instance)}*`;
  const linkLocal = nameServers.filter((it) => /^169\.254\.\d{1,3}\.\d{1,3}$/.test(it));
  const allowed = linkLocal.map(
    (it) => `iifname "${own}" ip daddr ${it} meta l4proto { tcp, udp } th dport 53 accept`,
  );
  return `table inet berth_${instance} {
  chain forward {
    type filter hook forward priority filter - 10; policy accept;
    iifname "${anyInterface}" oifname "${anyInterface}" drop
    iifname "${own}" meta nfproto ipv6 drop
    iifname "${own}" ip saddr != ${subnet} drop
    ${allowed.join("\n    ")}
    iifname "${own}" ip daddr 169.254.0.0/16 drop
    iifname "${own}" accept
    oifname "${own}" ct state established,related accept
    oifname "${own}" drop
  }
  chain input {
    type filter hook input priority filter - 10; policy accept;
    iifname "${anyInterface}" drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${subnet} oifname != "${anyInterface}" masquerade
  }
}`;
}

// Declares the table before it deletes it, so that a missing table is no error.
function removalScript(instance: string): string {
  return `table inet berth_${instance} {}\ndelete table inet berth_${instance}`;
}

const allocated = new Set<number>();
let next = 0;

/** Returns the machine's and the sandbox's address of a free /30 of the engine's range. */
function allocateSubnet(range: string) {
  const [base = "", bits = "0"] = range.split("/");
  const first = (toNumber(base) & maskOf(Number(bits))) >>> 0;
  const count = 2 ** (30 - Number(bits));
  const inUse = addressesOfMachine();
  for (let tries = 0; tries < count; tries += 1) {
    const index = (next + tries) % count;
    const hostAddress = toText(first + index * 4 + 1);
    if (allocated.has(index) || inUse.has(hostAddress)) continue;
    allocated.add(index);
    next = index + 1;
    const sandboxAddress = toText(first + index * 4 + 2);
    return { index, hostAddress, sandboxAddress, release: () => allocated.delete(index) };
  }
  throw new BerthError("too_many", `All ${count} networks of ${range} are in use.`, {
    hint: "Set BERTH_ENGINE_SUBNET to a larger range.",
  });
}

/** Another engine on this machine may use the same range. */
function addressesOfMachine(): Set<string> {
  return new Set(
    Object.values(networkInterfaces()).flatMap((it) => (it ?? []).map(({ address }) => address)),
  );
}

function maskOf(bits: number): number {
  return (0xffffffff << (32 - bits)) >>> 0;
}

function toNumber(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

function toText(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}
