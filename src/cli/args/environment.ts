/**
 * Owns `--env NAME=value`, and `--env NAME`, which takes the value from the caller's own environment.
 */
import { envNameSchema } from "../../protocol/fields/env.ts";
import { Failure } from "../failure.ts";
import { several } from "./option.ts";

export const environmentOption = several(
  "-e, --env <name=value>",
  "set a variable; NAME alone takes yours",
);

export function readEnvironment(given: string[], own: NodeJS.ProcessEnv): Record<string, string> {
  const env: Record<string, string> = {};
  for (const one of given) {
    const at = one.indexOf("=");
    const name = at < 0 ? one : one.slice(0, at);
    const value = at < 0 ? own[name] : one.slice(at + 1);
    if (!envNameSchema.safeParse(name).success) {
      throw new Failure(`--env: '${name}' cannot be the name of a variable`, {
        hint: "Write --env NAME=value.",
        code: "bad_usage",
      });
    }
    if (value === undefined) {
      throw new Failure(`--env: ${name} is not set here`, {
        hint: `Write --env ${name}=value, or set ${name} first.`,
        code: "bad_usage",
      });
    }
    env[name] = value;
  }
  return env;
}
