/**
 * Checks whether an object that does one thing at a time, described by a model, could have produced the results of
 * concurrent calls (Wing and Gong's search with Lowe's cache of visited states).
 */

export type Operation<Input, Output> = {
  input: Input;
  /** Missing without a response: the operation may have happened at any time since, or never. */
  output?: Output;
  /** Before it was sent. */
  call: number;
  /** After its response arrived; `Infinity` without one. */
  back: number;
};

export type Model<State, Input, Output> = {
  first: State;
  /** Every state in which the operation may leave the object; none when it cannot have had this output. */
  step(state: State, input: Input, output: Output | undefined): readonly State[];
  /** The same text for the same state. */
  key(state: State): string;
};

export type Verdict<Input, Output> =
  | { linear: true; steps: number }
  /** The longest possible explanation, and the operations that fit nowhere after it. */
  | {
      linear: false;
      steps: number;
      explained: Operation<Input, Output>[];
      stuck: Operation<Input, Output>[];
    };

const stepsMax = 5_000_000;

export function checkHistory<State, Input, Output>(
  model: Model<State, Input, Output>,
  operations: readonly Operation<Input, Output>[],
): Verdict<Input, Output> {
  const all = [...operations].sort((a, b) => a.call - b.call);
  const bits = all.map((_, index) => 1n << BigInt(index));
  const answered = all.reduce((set, { back }, n) => set | (back < Infinity ? bit(n) : 0n), 0n);
  const seen = new Set<string>();
  const open = [{ done: 0n, count: 0, state: model.first }];
  let deepest = { done: 0n, count: -1 };
  for (let here = open.pop(); here !== undefined; here = open.pop()) {
    const { done, count, state } = here;
    if ((done & answered) === answered) return { linear: true, steps: seen.size };
    const place = `${done.toString(36)} ${model.key(state)}`;
    if (seen.has(place)) continue;
    if (seen.size >= stepsMax) throw new Error(`undecided after ${stepsMax} steps`);
    seen.add(place);
    if (count > deepest.count) deepest = { done, count };
    for (const index of nextOf(done).reverse()) {
      const { input, output } = operation(index);
      for (const next of model.step(state, input, output)) {
        open.push({ done: done | bit(index), count: count + 1, state: next });
      }
    }
  }
  const explained = all.filter((_, index) => (deepest.done & bit(index)) !== 0n);
  const stuck = nextOf(deepest.done).map(operation);
  return { linear: false, steps: seen.size, explained, stuck };

  /** The operations that were called before the first open one returned. */
  function nextOf(done: bigint): number[] {
    const next: number[] = [];
    let firstBack = Number.POSITIVE_INFINITY;
    for (const [index, { call, back }] of all.entries()) {
      if (call > firstBack) break;
      if ((done & bit(index)) !== 0n) continue;
      next.push(index);
      firstBack = Math.min(firstBack, back);
    }
    return next;
  }

  function bit(index: number): bigint {
    return bits[index] ?? 0n;
  }

  function operation(index: number): Operation<Input, Output> {
    const found = all[index];
    if (found === undefined) throw new Error(`there is no operation ${index}`);
    return found;
  }
}
