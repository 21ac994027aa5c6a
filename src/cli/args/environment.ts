/**
 * Reads `--env NAME=value`, and `--env NAME`, which takes the value from the caller's environment.
 */
import { envNameSchema } from "../../protocol/fields/env.ts";
import { Failure } from "../failure.ts";
import { repeatable } from "./option.ts";

export const environmentOption = repeatable(
  "-e, --env <name=value>",
  "Set a variable; NAME alone takes your value",
);

export function parseEnvironment(given: string[], own: NodeJS.ProcessEnv): Record<string, string> {
  const env: Record<string, string> = {};
  for (const text of given) {
    const equals = text.indexOf("=");
    const name = equals < 0 ? text : text.slice(0, equals);
    const value = equals < 0 ? own[name] : text.slice(equals + 1);
    if (!envNameSchema.safeParse(name).success) {
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
