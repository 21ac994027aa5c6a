/** Resolves paths as E2B's daemon does: below the home of the user, with `~`, and `..` by its text. */
import { posix } from "node:path";
import { home } from "./sandboxes.ts";

export function resolvePath(path: string): string {
  const inHome = path === "~" ? "" : path.startsWith("~/") ? path.slice(2) : path;
  return posix.resolve(home, inHome);
}
