/**
 * Owns how a command is told which sandbox it is about: by its id, or by the configuration of the checkout.
 */
import { sandboxIdPattern } from "../../protocol/fields/id.ts";
import { Failure } from "../failure.ts";
import { text } from "./option.ts";

export const sandboxOptions = {
  id: text("--id <sandbox>", "that sandbox, whatever the checkout"),
  config: text("--config <file>", "that configuration, not .berth/sandbox.json or .toml"),
};

/** What of it `findSandbox` takes. */
export function readSandbox({
  id,
  config,
}: {
  id: string | undefined;
  config: string | undefined;
}) {
  if (id !== undefined && config !== undefined) {
    throw new Failure("--id and --config cannot be said together", {
      hint: "--id names one sandbox; --config says what a checkout's is made of.",
      code: "bad_usage",
    });
  }
  if (id !== undefined) checkId(id, "--id");
  return { id, config };
}

/** Before it becomes part of an address. */
export function checkId(id: string, name: string): string {
  if (sandboxIdPattern.test(id)) return id;
  throw new Failure(`${name}: '${id}' is no id of a sandbox`, {
    hint: "One has 24 letters and digits; `berth list` shows them.",
    code: "bad_usage",
  });
}
