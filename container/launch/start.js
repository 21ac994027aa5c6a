/**
 * Owns `npm start`: one machine's Berth, served by workerd with its objects on local disk.
 * Does not own any of the steps.
 */
import { secretsOf } from "./data-folder.js";
import { firstCommand } from "./first-command.js";
import { help, parseOptions } from "./options.js";
import { prepare } from "./prepare.js";
import { run, say } from "./say.js";
import { serve } from "./serve.js";
import { Workerd } from "./workerd.js";

async function start() {
  const options = parseOptions(process.argv.slice(2), process.env, "npm start");
  if (options.help) {
    process.stdout.write(help("npm start"));
    return 0;
  }
  const { data } = options;
  const { sandboxesMax, release } = await prepare(options);
  const { key, secret, firstRun } = secretsOf(data);
  const code = await serve({
    ...{ data, sandboxesMax, key, secret },
    startFront: (bindings) => Workerd.start(options, bindings),
    ready: (url) => {
      process.stdout.write(`ready on ${url}\n`);
      if (firstRun) say(`try it:\n${firstCommand(url, data)}`);
    },
  });
  release();
  return code;
}

process.stdout.on("error", () => {
  // Who reads us has gone; the server has not.
});
await run(start);
process.exit();
