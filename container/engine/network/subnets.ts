/**
 * Allocates the addresses of a sandbox's veth pair: a free /30 of the engine's range.
 */
import { networkInterfaces } from "node:os";
import { BerthError } from "../../../src/protocol/errors.ts";

type Subnet = {
  index: number;
  /** The machine's end. */
  hostAddress: string;
  /** The sandbox's end. */
  sandboxAddress: string;
  release(): void;
};

const allocated = new Set<number>();
let next = 0;

export function allocateSubnet(range: string): Subnet {
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
