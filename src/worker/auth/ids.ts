/**
 * Owns making sandbox ids and telling a made one from an invented one, by a keyed check in its last characters.
 * An invented id is refused here, before an object is addressed: each addressed object costs a file and memory.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import {
  sandboxIdCheckChars,
  sandboxIdPattern,
  sandboxIdRandomChars,
} from "../../protocol/fields/id.ts";

const letters = "abcdefghijklmnopqrstuvwxyz";
const alphabet = `${letters}0123456789`;

export function generateSandboxId(secret: string): string {
  const first = pick(letters, 1);
  const random = first + pick(alphabet, sandboxIdRandomChars - 1);
  return random + check(random, secret);
}

/** Ids that were found right in this isolate: a busy sandbox is not worth a MAC for each of its calls. */
const foundRight = new Map<string, string>();
const foundRightMax = 1000;

export function isGeneratedHere(id: string, secret: string): boolean {
  if (foundRight.get(id) === secret) return true;
  if (!sandboxIdPattern.test(id)) return false;
  const told = id.slice(sandboxIdRandomChars);
  const right = check(id.slice(0, sandboxIdRandomChars), secret);
  if (!timingSafeEqual(Buffer.from(told), Buffer.from(right))) return false;
  if (foundRight.size >= foundRightMax) foundRight.clear();
  foundRight.set(id, secret);
  return true;
}

/** 8 characters of 36: about 41 bits of a MAC over the random part. */
function check(random: string, secret: string): string {
  const mac = createHmac("sha256", secret).update(`sandbox id ${random}`).digest();
  let value = mac.readBigUInt64BE();
  let text = "";
  for (let at = 0; at < sandboxIdCheckChars; at++) {
    text += alphabet.charAt(Number(value % 36n));
    value /= 36n;
  }
  return text;
}

function pick(from: string, count: number): string {
  const fairMax = 256 - (256 % from.length);
  let text = "";
  while (text.length < count) {
    for (const byte of crypto.getRandomValues(new Uint8Array(count * 2))) {
      if (byte < fairMax && text.length < count) text += from.charAt(byte % from.length);
    }
  }
  return text;
}
