/** `berth token`: creates a token for one sandbox with some of the rights, and revokes all of them. */
import { limits } from "../../protocol/limits.ts";
import { rights as allRights } from "../../protocol/rights.ts";
import { badOption, repeatable, seconds } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findExistingSandbox } from "../find-sandbox.ts";

const hour = 60 * 60;

const revokeCommand = command({
  name: "revoke",
  summary: "Revoke all tokens of the sandbox, close what they opened",
  options: sandboxOptions,
  examples: [["One has leaked", "berth token revoke"]],
  async run(context, { options }) {
    const { sandbox, id } = await findExistingSandbox(context, options);
    await sandbox.tokens.deleteAll();
    context.output.printResult({ sandbox: id }, "All tokens of the sandbox are revoked.");
  },
});

export const tokenCommand = command({
  name: "token",
  summary: "Create a token for this sandbox, for somebody without a key",
  group: "Server",
  about: `Rights: ${allRights.join(", ")}; \`berth exec --id\` needs read, lease and exec. The token is shown only once.`,
  options: {
    ...sandboxOptions,
    rights: repeatable("--right <right>", "A right it has; can be repeated (default: read)"),
    ttlMs: seconds("--ttl <seconds>", "How long it is valid (default: 3600)", {
      min: limits.tokenTtlMinMs / 1000,
      max: limits.tokenTtlMaxMs / 1000,
    }),
  },
  examples: [
    ["For an agent that runs commands", "berth token --right read --right lease --right exec"],
    ["End all of them", "berth token revoke"],
  ],
  commands: [revokeCommand],
  async run(context, { options: { rights, ttlMs = hour * 1000, ...which } }) {
    const isRight = (text: string): text is (typeof allRights)[number] =>
      (allRights as readonly string[]).includes(text);
    const unknown = rights.find((right) => !isRight(right));
    if (unknown !== undefined) {
      throw badOption("--right", `must be one of ${allRights.join(", ")}, not '${unknown}'`);
    }
    const { sandbox } = await findExistingSandbox(context, which);
    const given = rights.length === 0 ? (["read"] as const) : rights.filter(isRight);
    const made = await sandbox.tokens.create({ rights: [...given], ttlMs });
    context.output.printResult(made, made.token);
  },
});
