/** Waits until a process exits, its time limit passes or its caller aborts. Ending it is up to the caller. */
import type { ProcessTree } from "../supervision/process-tree.ts";

/** Returns why the tree must be ended; undefined: the process exited by itself. */
export function waitForExit(
  tree: ProcessTree,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<"timeout" | "aborted" | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => finish("timeout"), timeoutMs);
    const onAbort = () => finish("aborted");
    signal.addEventListener("abort", onAbort);
    tree.exited.then(() => finish(undefined));
    if (signal.aborted) onAbort();
    function finish(reason: "timeout" | "aborted" | undefined): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(reason);
    }
  });
}
