/**
 * Owns what an object draws by chance: start ids, secrets, ids of commands.
 */
import type { Start } from "../../core/sandbox/record.ts";

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
/** The largest multiple of 36 in a byte: bytes above it would favour the first letters. */
const fairMax = 252;

export function newStart(): Start {
  return { startId: randomName(16), secret: randomName(43) };
}

export function newExecId(): string {
  return `x${randomName(15)}`;
}

export function randomName(length: number): string {
  let name = "";
  while (name.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length * 2))) {
      if (byte < fairMax && name.length < length) name += letters.charAt(byte % letters.length);
    }
  }
  return name;
}
