/**
 * Turns the command line into a program: arguments, working directory, variables.
 */
import { parseEnvironment } from "../args/environment.ts";
import type { Context } from "../context.ts";
import type { FoundSandbox } from "../find-sandbox.ts";

type ProgramInput = { argv: string[]; cwd?: string; env?: Record<string, string> };

export function toProgram(
  context: Context,
  { checkout }: Pick<FoundSandbox, "checkout">,
  argv: string[],
  { cwd, env }: { cwd: string | undefined; env: string[] },
): ProgramInput {
  // Runs in the caller's directory; at the top of the checkout, in the sandbox's own default.
  const below = checkout?.below === "" ? undefined : checkout?.below;
  const folder = cwd ?? below;
  return { argv, ...(folder === undefined ? {} : { cwd: folder }), ...toVariables(context, env) };
}

/** Empty if no variable is given. */
export function toVariables(context: Context, given: string[]): Pick<ProgramInput, "env"> {
  const env = parseEnvironment(given, context.env);
  return Object.keys(env).length === 0 ? {} : { env };
}
