/** Generates histories by seed: clients with overlapping calls to one object that does one thing at a time. */
import { Random as RandomNumbers } from "../sim/random.ts";
import type { Operation } from "./check.ts";

export type Random = (below: number) => number;

export function randomOf(seed: number): Random {
  const random = new RandomNumbers(seed);
  return (below) => random.between(0, below - 1);
}

export type Plan = { clients: number; calls: number; lostOf100: number };

/** A call of a client, which the object performs at `at`. */
type Turn<Input> = { client: number; input: Input; call: number; at: number; back: number };

/** `next` chooses a client's next call from its last one and that result; `object` performs it. */
export function history<Input, Output>(
  random: Random,
  { clients, calls, lostOf100 }: Plan,
  next: (client: number, last: Operation<Input, Output> | undefined) => Input,
  object: (input: Input) => Output,
): Operation<Input, Output>[] {
  const done: Operation<Input, Output>[] = [];
  const turn = (client: number, from: number, last?: Operation<Input, Output>): Turn<Input> => {
    const call = from + 1 + random(20);
    const takesEffectAt = call + 1 + random(20);
    return {
      client,
      input: next(client, last),
      call,
      at: takesEffectAt,
      back: takesEffectAt + 1 + random(20),
    };
  };
  const turns = Array.from({ length: clients }, (_, client) => turn(client, 0));
  while (done.length < clients * calls) {
    turns.sort((a, b) => a.at - b.at);
    const now = turns.shift();
    if (now === undefined) throw new Error("somebody always has a turn");
    const { client, input, call, back } = now;
    const output = object(input);
    const lost = random(100) < lostOf100;
    const operation: Operation<Input, Output> = lost
      ? { input, call, back: Number.POSITIVE_INFINITY }
      : { input, output, call, back };
    done.push(operation);
    turns.push(turn(client, back, operation));
  }
  return done;
}
