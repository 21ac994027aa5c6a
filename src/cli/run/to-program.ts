/** Turns the command line into a program: arguments, working directory, variables. */
import { envNamePattern } from "../../protocol/fields/forms.ts";
import { limits } from "../../protocol/limits.ts";
import type { ProcessInput } from "../../protocol/process.ts";
import { repeatable, text } from "../args/option.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import type { FoundSandbox } from "../find-sandbox.ts";

export type Program = Pick<ProcessInput, "cwd" | "env" | "timeoutMs" | "stdin" | "user"> & {
  argv: string[];
};

export function toProgram(
  context: Context,
  { checkout }: Pick<FoundSandbox, "checkout">,
  argv: string[],
  { cwd, env, user }: { cwd: string | undefined; env: string[]; user: string | undefined },
): Program {
  // Runs in the caller's directory; at the top of the checkout, in the sandbox's own default.
  const below = checkout?.below === "" ? undefined : checkout?.below;
  return { argv, cwd: cwd ?? below, env: toVariables(context, env), user };
}

export const userOption = text(
  "-u, --user <name>",
  "Who runs it in the sandbox, such as root (default: berth)",
);

export const environmentOption = repeatable(
  "-e, --env <name=value>",
  "Set a variable; NAME alone takes your value",
);

export function toVariables(
  { env: own }: Context,
  given: string[],
): Record<string, string> | undefined {
  if (given.length === 0) return undefined;
  const env: Record<string, string> = {};
  for (const text of given) {
    const [name = "", ...parts] = text.split("=");
    const value = parts.length === 0 ? own[name] : parts.join("=");
    if (!envNamePattern.test(name) || name.length > limits.envNameBytesMax) {
      throw new Failure(`\`--env\`: '${name}' is not a valid name of a variable.`, {
        hint: "Use `--env NAME=value`.",
        code: "bad_usage",
      });
    }
    if (value === undefined) {
      throw new Failure(`\`--env\`: ${name} is not set here.`, {
        hint: `Use \`--env ${name}=value\`, or set ${name} first.`,
        code: "bad_usage",
      });
    }
    env[name] = value;
  }
  return env;
}
