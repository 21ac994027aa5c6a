const wordBytes = 16;

/**
 * Generates a word that nobody can guess: letters and digits, which mean the same in a path and in a shell's line. It
 * does not begin with a digit, which would become part of an escape before it.
 */
export function randomWord(): string {
  return `w${Buffer.from(crypto.getRandomValues(new Uint8Array(wordBytes))).toString("hex")}`;
}
