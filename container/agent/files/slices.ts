/** Runs long work on files in slices with the rights of a command, so that other calls run in between. */
import { limits } from "../../../src/protocol/limits.ts";
import { type User, withUserRights } from "../kernel/libc.ts";

/** `work` yields where it may be interrupted, and frees what it holds. */
export async function inSlices<T>(
  user: User | undefined,
  work: Generator<unknown, T>,
  signal?: AbortSignal,
): Promise<T> {
  try {
    for (;;) {
      signal?.throwIfAborted();
      const done = withUserRights(user, () => slice(work));
      if (done !== undefined) return done.value;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  } finally {
    withUserRights(user, () => work.return(undefined as T));
  }
}

function slice<T>(work: Generator<unknown, T>): { value: T } | undefined {
  const end = performance.now() + limits.fileSliceMs;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step;
    if (performance.now() >= end) return undefined;
  }
}
