/**
 * Owns that every verb may be given up: whatever its arguments, the options at their end take a signal and a limit.
 * Does not own the verbs.
 */
import type { CallOptions, Link } from "./request.ts";

type Verb = (...args: never[]) => unknown;

/** Its arguments as they are, or all of them with these options at their end. */
type WithOptions<Args extends unknown[]> = Args extends [...infer Before, infer Last]
  ? Last extends string | number | Uint8Array
    ? [...Args, CallOptions]
    : [...Before, Last & CallOptions]
  : [CallOptions];

export type Cancellable<Verbs> = {
  [Name in keyof Verbs]: Verbs[Name] extends (...args: infer Args) => infer Answer
    ? Verbs[Name] & ((...args: WithOptions<Required<Args>>) => Answer)
    : Verbs[Name];
};

export function cancellable<Verbs extends object>(
  link: Link,
  verbsOver: (link: Link) => Verbs,
): Cancellable<Verbs> {
  const plain = verbsOver(link) as Record<string, Verb>;
  const names = Object.keys(plain);
  return Object.fromEntries(
    names.map((name) => [
      name,
      (...args: never[]) => {
        const options = optionsOf(args.at(-1));
        if (options === undefined) return plain[name]?.(...args);
        const verbs = verbsOver(link.with(options)) as Record<string, Verb>;
        return verbs[name]?.(...args.slice(0, -1), withoutOptions(args.at(-1)) as never);
      },
    ]),
  ) as Cancellable<Verbs>;
}

/** Known by their types: a body may have a field of the same name, though none holds these. */
function optionsOf(last: unknown): CallOptions | undefined {
  if (typeof last !== "object" || last === null) return undefined;
  const { signal, answerWithinMs } = last as Record<string, unknown>;
  const options: CallOptions = {};
  if (signal instanceof AbortSignal) options.signal = signal;
  if (typeof answerWithinMs === "number") options.answerWithinMs = answerWithinMs;
  return Object.keys(options).length === 0 ? undefined : options;
}

function withoutOptions(last: unknown): object {
  const { signal: _signal, answerWithinMs: _answerWithinMs, ...rest } = last as CallOptions;
  return rest;
}
