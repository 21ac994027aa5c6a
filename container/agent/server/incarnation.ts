/**
 * Owns the name of this life of the agent: `<start id>.<drawn now>`.
 * Does not own the start id: the object minted it, and a container that restarts by itself brings the same again.
 */
const letters = "abcdefghijklmnopqrstuvwxyz012345";
const drawnChars = 16;

export function drawIncarnation(startId: string): string {
  // 32 letters divide a byte's 256 values evenly.
  const drawn = Array.from(
    crypto.getRandomValues(new Uint8Array(drawnChars)),
    (byte) => letters[byte % letters.length],
  );
  return `${startId}.${drawn.join("")}`;
}
