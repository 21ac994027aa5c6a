/**
 * Generates the name of this incarnation: `<start id>.<random>`. A container that restarts by itself has the same start
 * id again, which the object generated.
 */
const letters = "abcdefghijklmnopqrstuvwxyz012345";
const randomChars = 16;

export function generateIncarnation(startId: string): string {
  // 32 letters divide a byte's 256 values evenly.
  const random = Array.from(
    crypto.getRandomValues(new Uint8Array(randomChars)),
    (byte) => letters[byte % letters.length],
  );
  return `${startId}.${random.join("")}`;
}
