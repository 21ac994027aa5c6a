/** Declares `--id` and `--config`, by which a command is given its sandbox. */
import { sandboxIdPattern } from "../../protocol/fields/forms.ts";
import { Failure } from "../failure.ts";
import { text } from "./option.ts";

export const sandboxOptions = {
  id: text("--id <sandbox>", "Use this sandbox instead of the checkout's"),
  config: text("--config <file>", "Use this configuration instead of .berth/sandbox.json or .toml"),
};

export type SandboxOptions = { id: string | undefined; config: string | undefined };

export function parseSandboxOptions({ id, config }: SandboxOptions): SandboxOptions {
  if (id !== undefined && config !== undefined) {
    throw new Failure("`--id` and `--config` cannot be combined.", {
      hint: "`--id` selects one sandbox; `--config` selects the configuration of the checkout's.",
      code: "bad_usage",
    });
  }
  if (id !== undefined) checkSandboxId(id, "--id");
  return { id, config };
}

/** Checked before the id becomes part of a URL. */
export function checkSandboxId(id: string, name: string): string {
  if (sandboxIdPattern.test(id)) return id;
  throw new Failure(`\`${name}\`: '${id}' is not the id of a sandbox.`, {
    hint: "An id has 24 letters and digits. Run `berth list` to see the ids.",
    code: "bad_usage",
  });
}
