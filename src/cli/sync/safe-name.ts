/**
 * Owns which names from a sandbox may become files of this machine: what runs there may have been told to attack.
 * Does not own what stands at them here (here.ts).
 */

/** Left out by a file system of Apple's when it compares names. */
const unseen = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
const nameBytesMax = 4095;
const partBytesMax = 255;

/** Why not, or nothing. A name is bytes, each a character. */
export function whyUnsafe(name: string): string | undefined {
  if (name === "" || name.length > nameBytesMax || name.includes("\0")) return "no name of a file";
  if (process.platform === "win32" && /[\\:]/.test(name)) return "no name of a file here";
  for (const part of name.split("/")) {
    if (part === "" || part === "." || part === "..") return "it leads out of the checkout";
    if (part.length > partBytesMax) return "the name is too long";
    if (isRepository(part)) return "it is a part of the repository";
  }
  return undefined;
}

/** `.git` as any file system may read it: in other case, with an end that is dropped, by its short name. */
function isRepository(part: string): boolean {
  const text = Buffer.from(part, "latin1").toString().replace(unseen, "").normalize("NFKC");
  const [stem = ""] = text.split(":");
  return /^(\.git|git~\d+)$/i.test(stem.replace(/[ .]+$/, ""));
}
