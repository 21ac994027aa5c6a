/**
 * Owns the way out over a veth pair and address translation, for an engine that is root.
 * Does not own the choice of it (mode.ts). Sandboxes reach neither each other nor the machine itself.
 *
 * Changes of the machine: one nft table for the engine, `net.ipv4.ip_forward`, one interface for each sandbox.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { log, messageOf } from "../log.ts";
import { run } from "../run.ts";
import type { Connection } from "./connect.ts";
import { takeSubnet } from "./subnets.ts";

const stepTimeoutMs = 10_000;
const forwardSetting = "/proc/sys/net/ipv4/ip_forward";

/** All engines of a machine name their interfaces so, and so keep each other's sandboxes apart too. */
const anyInterface = "brth*";

export async function prepareNat(instance: string, subnet: string): Promise<void> {
  await nft(`${removed(instance)}\n${table(instance, subnet)}`);
  if (readFileSync(forwardSetting, "utf8").trim() !== "1") writeFileSync(forwardSetting, "1");
}

export async function removeNat(instance: string): Promise<void> {
  await nft(removed(instance));
}

export async function connectNat(
  instance: string,
  subnet: string,
  agentPid: number,
): Promise<Connection> {
  const net = takeSubnet(subnet);
  const name = `${prefixOf(instance)}${net.index.toString(36)}`;
  const close = () => {
    // It goes with the sandbox's namespace by itself, but later: its name and addresses are wanted again.
    run(["ip", "link", "delete", name], { timeoutMs: stepTimeoutMs })
      .catch(() => undefined)
      .finally(net.release);
  };
  try {
    await ip(
      [],
      [
        `link add ${name} type veth peer name eth0 netns ${agentPid}`,
        `addr add ${net.outside}/30 dev ${name}`,
        `link set ${name} up`,
      ],
    );
    await ip(
      ["nsenter", `--net=/proc/${agentPid}/ns/net`, "--"],
      [
        `addr add ${net.inside}/30 dev eth0`,
        "link set eth0 up",
        `route add default via ${net.outside}`,
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

// Declared before it is deleted: then that is no error where there was none.
function removed(instance: string): string {
  return `table inet berth_${instance} {}\ndelete table inet berth_${instance}`;
}

function table(instance: string, subnet: string): string {
  const own = `${prefixOf(instance)}*`;
  return `table inet berth_${instance} {
  chain forward {
    type filter hook forward priority filter - 10; policy accept;
    iifname "${anyInterface}" oifname "${anyInterface}" drop
    iifname "${own}" meta nfproto ipv6 drop
    iifname "${own}" ip saddr != ${subnet} drop
    iifname "${own}" ip daddr 169.254.0.0/16 th dport != 53 drop
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
