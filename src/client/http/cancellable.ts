/**
 * Adds `signal` and `answerWithinMs` to the options of every API method.
 */
import type { CallOptions, HttpClient } from "./request.ts";

type Method = (...args: never[]) => unknown;

/** The arguments as they are, or all of them with these options in the last one. */
type WithOptions<Args extends unknown[]> = Args extends [...infer Leading, infer Last]
  ? Last extends string | number | Uint8Array
    ? [...Args, CallOptions]
    : [...Leading, Last & CallOptions]
  : [CallOptions];

/** The same methods; each also takes `CallOptions` in its last argument. */
export type Cancellable<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...args: infer Args) => infer Result
    ? Methods[Name] & ((...args: WithOptions<Required<Args>>) => Result)
    : Methods[Name];
};

/** `makeMethods` is called again, with a client of its own, for each call that has such options. */
export function cancellable<Methods extends object>(
  client: HttpClient,
  makeMethods: (client: HttpClient) => Methods,
): Cancellable<Methods> {
  const plain = makeMethods(client) as Record<string, Method>;
  const names = Object.keys(plain);
  return Object.fromEntries(
    names.map((name) => [
      name,
      (...args: never[]) => {
        const options = readCallOptions(args.at(-1));
        if (options === undefined) return plain[name]?.(...args);
        const methods = makeMethods(client.with(options)) as Record<string, Method>;
        return methods[name]?.(...args.slice(0, -1), omitCallOptions(args.at(-1)) as never);
      },
    ]),
  ) as Cancellable<Methods>;
}

/** Recognised by name and type: no request body has a field of these names with these types. */
function readCallOptions(last: unknown): CallOptions | undefined {
  if (typeof last !== "object" || last === null) return undefined;
  const { signal, answerWithinMs, retries } = last as Record<string, unknown>;
  const options: CallOptions = {};
  if (signal instanceof AbortSignal) options.signal = signal;
  if (typeof answerWithinMs === "number") options.answerWithinMs = answerWithinMs;
  if (typeof retries === "number") options.retries = retries;
  return Object.keys(options).length === 0 ? undefined : options;
}

function omitCallOptions(last: unknown): object {
  const omitted = ["signal", "answerWithinMs", "retries"];
  const rest = Object.entries(last as object).filter(([name]) => !omitted.includes(name));
  return Object.fromEntries(rest);
}
