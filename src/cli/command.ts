/**
 * Owns how a command is declared: its name, arguments, options, examples, and what it does.
 * Does not own parsing (program.ts), nor which commands there are (commands.ts).
 */
import type { Option } from "./args/option.ts";
import type { Positional } from "./args/positional.ts";
import type { Context } from "./context.ts";

type Options = Record<string, Option<unknown>>;
type Positionals = Record<string, Positional<unknown>>;

export type Values<D> = {
  [K in keyof D]: D[K] extends Option<infer T> ? T : D[K] extends Positional<infer T> ? T : never;
};

export type Declaration<P, O> = {
  name: string;
  /** One line of `berth --help`. */
  summary: string;
  /** What else `--help` says, as whole sentences. */
  about?: string;
  args?: P;
  options?: O;
  /** What it is for, and the line. */
  examples: [what: string, line: string][];
  /** All from the first argument on belongs to another command: `berth exec ls -l`. */
  passThrough?: boolean;
  /** Ctrl-C and TERM end a command at once, unless it looks after them itself. */
  ownSignals?: boolean;
  /** What help says of `--json`, where that is not one document of this command. */
  json?: string;
  commands?: Command[];
  /** Gives the exit code; 0 where it gives none. */
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
