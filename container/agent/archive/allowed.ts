/**
 * Owns which names and links an archive may hold, told from the words alone.
 * Does not own where existing links lead: the kernel holds every step beneath the target (unpacked-tree.ts).
 */
import { limits } from "../../../src/protocol/limits.ts";
import { badArchive, type Member } from "./member.ts";

const nameBytesMax = 255;

/** The names on the way to a member; none: the folder itself that is unpacked. */
export function namesOn(path: string, what = "a member"): string[] {
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

const relativeHint = "pack it from inside of its folder: tar -C <folder> .";

/**
 * A link may lead up as far as the target, and from there down: `..` after a name would mean whatever that name
 * leads to. `depth` is how many folders below the target the link really stands.
 */
export function demandInside({ says }: Member, depth: () => number): void {
  const names = says.split("/").filter((name) => name !== "" && name !== ".");
  const up = names.findIndex((name) => name !== "..");
  const ups = up < 0 ? names.length : up;
  if (says === "" || says.includes("\0")) throw badArchive("holds a link that says nothing");
  const isDevious = names.slice(ups).includes("..");
  if (says.startsWith("/") || isDevious || (ups > 0 && ups > depth())) {
    throw badArchive("holds a link that leads out of the folder", linkHint);
  }
}

const linkHint = "leave it out, or unpack by a command of the sandbox";
