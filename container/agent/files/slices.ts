/**
 * Owns long work on files in slices: each runs with the rights of a command, and between them everybody else does.
 * Does not own the work: a generator that yields wherever it may be interrupted, and frees what it holds.
 */
import { limits } from "../../../src/protocol/limits.ts";
import { type User, withRightsOf } from "../kernel/libc.ts";

/** `before` each slice: throws to end the work. */
export async function inSlices<T>(
  user: User | undefined,
  work: Generator<unknown, T>,
  before: () => void = () => {},
): Promise<T> {
  try {
    for (;;) {
      before();
      const done = withRightsOf(user, () => slice(work));
      if (done !== undefined) return done.value;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  } finally {
    withRightsOf(user, () => work.return(undefined as T));
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
