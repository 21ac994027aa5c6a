/** Finds the id ranges that running sandboxes of this machine hold. */
import { readdirSync } from "node:fs";

export function claimedIdRanges(): number[] {
  return readdirSync("/run/berth/ids").map(Number);
}
