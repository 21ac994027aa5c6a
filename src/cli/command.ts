/** Declares what a command is: name, arguments, options, examples and action. */
import type { Option, Positional } from "./args/option.ts";
import type { Context } from "./context.ts";

type Options = Record<string, Option<unknown>>;
type Positionals = Record<string, Positional<unknown>>;

type Values<D> = {
  [K in keyof D]: D[K] extends Option<infer T> ? T : D[K] extends Positional<infer T> ? T : never;
};

type Declaration<P, O> = {
  name: string;
  /** Shown in `berth --help`, and as the first sentence of the command's own help. Without a period. */
  summary: string;
  /** `berth --help` has a line for each daily command; it lists the others by name, in these groups. */
  group?: "Sandbox" | "Server";
  /** The rest of the description, in whole sentences. */
  about?: string;
  args?: P;
  options?: O;
  /** A title and a command line each. */
  examples: [what: string, line: string][];
  /** Everything after the first argument belongs to another command: `berth exec ls -l`. */
  passThrough?: boolean;
  /** true: the command ends itself when `context.interrupts` says so; otherwise an interrupt ends it at once. */
  ownSignals?: boolean;
  /** The help for `--json`, where it is not one document. */
  json?: string;
  commands?: Command[];
  /** Resolves to the exit code; undefined is 0. */
  run(
    context: Context,
    given: { args: Values<P>; options: Values<O> },
  ): Promise<number | undefined>;
};

export type Command = Declaration<Positionals, Options>;

export function command<
  P extends Positionals = Record<never, never>,
  O extends Options = Record<never, never>,
>(declaration: Declaration<P, O>): Command {
  return declaration as Command;
}
