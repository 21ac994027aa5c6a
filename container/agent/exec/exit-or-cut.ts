/**
 * Owns waiting for the end of what runs, or for the reason to end it: its time limit, or a caller who is gone.
 * Does not own ending it.
 */
import type { Tree } from "../supervision/process-tree.ts";

/** Why it must be ended; undefined: it ended by itself. */
export function exitOrCut(
  tree: Tree,
  timeoutMs: number,
  gone: AbortSignal,
): Promise<"timeout" | "gone" | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => done("timeout"), timeoutMs);
    const onGone = () => done("gone");
    gone.addEventListener("abort", onGone);
    tree.exited.then(() => done(undefined));
    if (gone.aborted) onGone();
    function done(why: "timeout" | "gone" | undefined): void {
      clearTimeout(timer);
      gone.removeEventListener("abort", onGone);
      resolve(why);
    }
  });
}
