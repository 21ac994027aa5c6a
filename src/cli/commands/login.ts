/**
 * Owns `berth login`: keeps the server's address and key for this user, once they are known to work.
 * The key comes from standard input or is typed unseen; never from an argument.
 */

import { connect } from "../../client/index.ts";
import { flag, text } from "../args/option.ts";
import { command } from "../command.ts";
import { Failure } from "../failure.ts";
import { readSecret } from "../read-secret.ts";
import { credentialsPath, removeCredentials, storeCredentials } from "../server/credentials.ts";
import { checkUrl, localUrl } from "../server/find.ts";

export const loginCommand = command({
  name: "login",
  summary: "keep the server's address and key for this user",
  about:
    "BERTH_URL and BERTH_KEY win over it. Where neither is there, the key of a server started here is taken: " +
    "$BERTH_DATA/key or .berth/key, at " +
    `${localUrl}.`,
  options: {
    url: text("--url <address>", `of the server; ${localUrl} unless given`),
    keyStdin: flag("--key-stdin", "read the key from standard input"),
    forget: flag("--forget", "forget what was kept"),
  },
  examples: [
    ["Type the key", "berth login --url https://berth.example.com"],
    ["From a script", "berth login --key-stdin < key"],
  ],
  async run(context, { options }) {
    const { output, env } = context;
    if (options.forget) {
      removeCredentials(env);
      if (context.json) output.document({ forgotten: true });
      else output.line("the login is forgotten");
      return;
    }
    const url = checkUrl(options.url ?? env.BERTH_URL ?? localUrl, "--url");
    const key = await readSecret(context, "key: ", options.keyStdin);
    if (!/^[\x21-\x7e]+$/.test(key)) {
      throw new Failure("the key must be one word", {
        hint: "As the server gave it.",
        code: "bad_key",
      });
    }
    context.progress.tell(`asking ${url}`);
    const { total } = await connect({ url, key }).counts();
    const path = storeCredentials(env, { url, key });
    context.progress.end();
    if (context.json) output.document({ url, storedIn: path, sandboxes: total });
    else output.line(`logged in to ${url}; kept in ${credentialsPath(env)}`);
  },
});
