/**
 * Owns what a caller's words come to as a program: its arguments, the folder it runs in, its variables.
 * Does not own running it.
 */
import { readEnvironment } from "../args/environment.ts";
import type { Context } from "../context.ts";
import type { Found } from "../find-sandbox.ts";

export type Called = { argv: string[]; cwd?: string; env?: Record<string, string> };

export function programOf(
  context: Context,
  { checkout }: Pick<Found, "checkout">,
  argv: string[],
  { cwd, env }: { cwd: string | undefined; env: string[] },
): Called {
  // It runs where the caller stands; at the top, where the sandbox itself begins.
  const below = checkout?.below === "" ? undefined : checkout?.below;
  const at = cwd ?? below;
  return { argv, ...(at === undefined ? {} : { cwd: at }), ...variablesOf(context, env) };
}

/** Nothing where none is given. */
export function variablesOf(context: Context, given: string[]): Pick<Called, "env"> {
  const env = readEnvironment(given, context.env);
  return Object.keys(env).length === 0 ? {} : { env };
}
