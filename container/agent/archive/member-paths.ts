/**
 * Checks by their text alone which paths and links an archive may hold. Where existing links lead is enforced by the
 * kernel, which resolves every step beneath the target (unpacked-tree.ts).
 */
import { limits } from "../../../src/protocol/limits.ts";
import { badArchive, type Member } from "./member.ts";

const nameBytesMax = 255;

/** Splits the path of a member into names. Empty for the target folder itself. */
export function splitMemberPath(path: string, what = "a member"): string[] {
  if (path.startsWith("/")) throw badArchive(`holds ${what} with an absolute path`, relativeHint);
  if (path.includes("\0")) throw badArchive(`holds ${what} with a NUL in its path`);
  if (path.length > limits.pathBytesMax) throw badArchive(`holds ${what} with too long a path`);
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw badArchive(`holds ${what} with .. in its path`, relativeHint);
  if (names.some((name) => name.length > nameBytesMax)) {
    throw badArchive(`holds ${what} with too long a name`);
  }
  return names;
}

const relativeHint = "Pack it from inside its folder: `tar -C <folder> .`";

/**
 * A link may lead up as far as the target, and then down. A `..` after a name is refused, because it depends on where
 * that name leads. `depth` returns how many folders below the target the link is.
 */
export function assertLinkStaysInside({ linkTarget: says }: Member, depth: () => number): void {
  const names = says.split("/").filter((name) => name !== "" && name !== ".");
  const up = names.findIndex((name) => name !== "..");
  const levelsUp = up < 0 ? names.length : up;
  if (says === "" || says.includes("\0")) throw badArchive("holds a link without a target");
  const isDevious = names.slice(levelsUp).includes("..");
  if (says.startsWith("/") || isDevious || (levelsUp > 0 && levelsUp > depth())) {
    throw badArchive("holds a link that leads out of the folder", linkHint);
  }
}

const linkHint = "Leave it out, or unpack the archive with a command in the sandbox.";
