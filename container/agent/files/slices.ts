/**
 * Runs long work on files in slices, each with the rights of a command, so that other calls run in between.
 * The work is a generator that yields where it may be interrupted, and frees what it holds.
 */
import { limits } from "../../../src/protocol/limits.ts";
import { type User, withUserRights } from "../kernel/libc.ts";

/** `beforeSlice` may throw to end the work. */
export async function inSlices<T>(
  user: User | undefined,
  work: Generator<unknown, T>,
  beforeSlice: () => void = () => {},
): Promise<T> {
  try {
    for (;;) {
      beforeSlice();
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
