/**
 * Limits how many of a member's changed paths are stored, because a row has a maximum size and all members together make
 * up one response. The counts are always complete.
 */
import type { Changes } from "../../protocol/checkpoint.ts";
import { limits } from "../../protocol/limits.ts";

const kinds = ["added", "modified", "deleted"] as const;

/** Takes paths of each kind in turn, so that many changes of one kind do not hide the others. */
export function truncateChanges(changes: Changes): Changes {
  const listed = { added: [] as string[], modified: [] as string[], deleted: [] as string[] };
  let pathsLeft: number = limits.changedPathsMax;
  let charsLeft: number = limits.changedPathsCharsMax;
  const openKinds = new Set<(typeof kinds)[number]>(kinds);
  while (openKinds.size > 0) {
    for (const kind of openKinds) {
      const path = changes[kind][listed[kind].length];
      if (path === undefined || pathsLeft === 0 || path.length > charsLeft) {
        openKinds.delete(kind);
        continue;
      }
      listed[kind].push(path);
      pathsLeft -= 1;
      charsLeft -= path.length;
    }
  }
  return { ...changes, ...listed };
}
