/**
 * `npm run dev`: Berth served by wrangler, which reloads after each source change. Its objects and sandboxes have a
 * folder of their own; the key is the same as for `npm start`.
 */
import { join } from "node:path";
import { loadSecrets } from "./data-folder.js";
import { firstCommand } from "./first-command.js";
import { help, parseOptions } from "./options.js";
import { ensurePrerequisites } from "./prerequisites.js";
import { printStatus, runProgram } from "./program.js";
import { serve } from "./serve.js";
import { WranglerDev } from "./wrangler-dev.js";

async function dev() {
  const options = parseOptions(process.argv.slice(2), process.env, "npm run dev");
  if (options.help) {
    process.stdout.write(help("npm run dev"));
    return 0;
  }
  const data = join(options.data, "dev");
  const { sandboxesMax, release } = await ensurePrerequisites({ ...options, data });
  const { key, secret } = loadSecrets(options.data);
  const code = await serve({
    ...{ data, sandboxesMax, key, secret },
    startWorker: (bindings) => WranglerDev.start({ ...options, data }, bindings),
    ready: (url) => {
      process.stdout.write(`ready on ${url}\n`);
      printStatus(`Reloads at each change. Try it:\n${firstCommand(url, options.data)}`);
    },
  });
  release();
  return code;
}

await runProgram(dev);
process.exit();
