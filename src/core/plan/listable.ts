/**
 * Owns how much of a member's changed paths is kept: a row has a size that it cannot pass, and all members together
 * are one answer. Does not own how they are found; how many there are is told in any case.
 */
import type { Changes } from "../../protocol/changes.ts";
import { limits } from "../../protocol/limits.ts";

const kinds = ["added", "modified", "deleted"] as const;

/** Each kind has its turn, so that many of one hide none of another. */
export function listable(changes: Changes): Changes {
  const listed = { added: [] as string[], modified: [] as string[], deleted: [] as string[] };
  let left: number = limits.changedPathsMax;
  let chars: number = limits.changedPathsCharsMax;
  const open = new Set<(typeof kinds)[number]>(kinds);
  while (open.size > 0) {
    for (const kind of open) {
      const path = changes[kind][listed[kind].length];
      if (path === undefined || left === 0 || path.length > chars) {
        open.delete(kind);
        continue;
      }
      listed[kind].push(path);
      left -= 1;
      chars -= path.length;
    }
  }
  return { ...changes, ...listed };
}
