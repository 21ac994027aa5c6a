/** Bounds the agent's buffers by the memory of its machine: the limits suit a large one, and the smallest has 256 MiB. */
import { totalmem } from "node:os";

/** The agent keeps at most this share of the memory in one buffer. */
const share = 1 / 8;

export function boundByMemory(bytesMax: number, memoryBytes: number = totalmem()): number {
  return Math.min(bytesMax, Math.floor(memoryBytes * share));
}
