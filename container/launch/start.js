/**
 * `npm start`: Berth on one machine, served by workerd with its objects on local disk.
 */
import { loadSecrets } from "./data-folder.js";
import { firstCommand } from "./first-command.js";
import { help, parseOptions } from "./options.js";
import { ensurePrerequisites } from "./prerequisites.js";
import { printStatus, runProgram } from "./program.js";
import { serve } from "./serve.js";
import { Workerd } from "./workerd.js";

async function start() {
  const options = parseOptions(process.argv.slice(2), process.env, "npm start");
  if (options.help) {
    process.stdout.write(help("npm start"));
    return 0;
  }
  const { data } = options;
  const { sandboxesMax, release } = await ensurePrerequisites(options);
  const { key, secret, firstRun } = loadSecrets(data);
  const code = await serve({
    ...{ data, sandboxesMax, key, secret },
    startWorker: (bindings) => Workerd.start(options, bindings),
    ready: (url) => {
      process.stdout.write(`ready on ${url}\n`);
      if (firstRun) printStatus(`Try it:\n${firstCommand(url, data)}`);
    },
  });
  release();
  return code;
}

process.stdout.on("error", () => {
  // The reader of stdout has gone; the server continues.
});
await runProgram(start);
process.exit();
