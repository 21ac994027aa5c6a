/**
 * Tries what a jail with ids of its own needs: a user namespace, folders with its ids, and an overlay of them in which a
 * stored file gets another owner. Runs as a program of its own, whose mounts end with it.
 */
import { chownSync, openSync, statSync } from "node:fs";
import { jailUser } from "./identity.ts";
import { MappedFolders } from "./layers.ts";
import { makeUserNamespace } from "./user-namespace.ts";

export function probeRange(args: string[]): void {
  const [first = "", callList = "", folder = "", mountPoint = ""] = args;
  const range = { first: Number(first) };
  const namespace = makeUserNamespace(range, openSync(callList, "r"));
  const mapped = new MappedFolders(mountPoint, namespace.user, range);
  const [tree, usr, root] = [mapped.map(folder), mapped.map("/usr"), mapped.empty()];
  const lower = `lowerdir=${tree}/lower:${usr}`;
  mapped.mountOverlay(root, 0n, `${lower},upperdir=${tree}/upper,workdir=${tree}/work`);
  const owner = range.first + jailUser.uid;
  chownSync(`${root}/file`, owner, owner);
  const stored = statSync(`${folder}/upper/file`).uid;
  if (stored !== jailUser.uid) throw new Error(`the file system stores ${stored} for a mapped id`);
}
