/**
 * `berth login`: stores the server's address and key for this user once they are known to work. The key is read from
 * standard input or typed unseen, never from an argument.
 */

import { connect } from "../../client/index.ts";
import { flag, text } from "../args/option.ts";
import { command } from "../command.ts";
import { Failure } from "../failure.ts";
import { readSecret } from "../read-secret.ts";
import { credentialsPath, removeCredentials, storeCredentials } from "../server/credentials.ts";
import { checkUrl, localUrl } from "../server/find-server.ts";

export const loginCommand = command({
  name: "login",
  summary: "Store the server's address and key for this user",
  about:
    "BERTH_URL and BERTH_KEY override it. Without a login, the key of a server started here is used: " +
    "$BERTH_DATA/key or .berth/key, at " +
    `${localUrl}.`,
  options: {
    url: text("--url <address>", `Address of the server (default: ${localUrl})`),
    keyStdin: flag("--key-stdin", "Read the key from standard input"),
    forget: flag("--forget", "Remove the stored login"),
  },
  examples: [
    ["Type the key", "berth login --url https://berth.example.com"],
    ["From a script", "berth login --key-stdin < key"],
  ],
  async run(context, { options }) {
    const { output, env } = context;
    if (options.forget) {
      removeCredentials(env);
      if (context.json) output.printJson({ forgotten: true });
      else output.print("Removed the login.");
      return;
    }
    const url = checkUrl(options.url ?? env.BERTH_URL ?? localUrl, "--url");
    const key = await readSecret(context, "Key: ", options.keyStdin);
    if (!/^[\x21-\x7e]+$/.test(key)) {
      throw new Failure("The key must not contain spaces or characters outside of ASCII.", {
        hint: "Use the key exactly as the server printed it.",
        code: "bad_key",
      });
    }
    context.progress.show(`Asking ${url}`);
    const { total } = await connect({ url, key }).counts();
    const path = storeCredentials(env, { url, key });
    context.progress.end();
    if (context.json) output.printJson({ url, storedIn: path, sandboxes: total });
    else output.print(`Logged in to ${url}; stored in ${credentialsPath(env)}.`);
  },
});
