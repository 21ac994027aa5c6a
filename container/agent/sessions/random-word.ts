/**
 * Owns drawing words that nobody can guess.
 */

const wordBytes = 16;

/** Letters and digits, the same in a path and in a shell's line; no digit first, which would belong to an escape. */
export function drawWord(): string {
  return `w${Buffer.from(crypto.getRandomValues(new Uint8Array(wordBytes))).toString("hex")}`;
}
