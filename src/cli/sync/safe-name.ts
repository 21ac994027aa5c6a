/**
 * Decides which names from a sandbox may become files of this machine, because a program there may try to attack it.
 */

/** Apple's file systems ignore these characters when they compare names. */
const ignorableCharacters = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
const nameBytesMax = 4095;
const partBytesMax = 255;

/** Why the name is not acceptable; undefined if it is. Each character of a name is a byte. */
export function findNameProblem(name: string): string | undefined {
  if (name === "" || name.length > nameBytesMax || name.includes("\0"))
    return "it is not a valid name";
  if (process.platform === "win32" && /[\\:]/.test(name))
    return "it is not a valid name on this machine";
  for (const part of name.split("/")) {
    if (part === "" || part === "." || part === "..") return "it leads out of the checkout";
    if (part.length > partBytesMax) return "the name is too long";
    if (isGitFolderName(part)) return "it is part of a git folder";
  }
  return undefined;
}

/** `.git` as any file system may read it: in other case, with an ignored ending, by its short name. */
function isGitFolderName(part: string): boolean {
  const text = Buffer.from(part, "latin1")
    .toString()
    .replace(ignorableCharacters, "")
    .normalize("NFKC");
  const [stem = ""] = text.split(":");
  return /^(\.git|git~\d+)$/i.test(stem.replace(/[ .]+$/, ""));
}
