/**
 * Owns `npm run dev`: the same Berth served by wrangler, which reloads at each change of a source.
 * Its objects and sandboxes stand in a folder of their own; the key is that of `npm start`.
 */
import { join } from "node:path";
import { secretsOf } from "./data-folder.js";
import { firstCommand } from "./first-command.js";
import { help, parseOptions } from "./options.js";
import { prepare } from "./prepare.js";
import { run, say } from "./say.js";
import { serve } from "./serve.js";
import { WranglerDev } from "./wrangler-dev.js";

async function dev() {
  const options = parseOptions(process.argv.slice(2), process.env, "npm run dev");
  if (options.help) {
    process.stdout.write(help("npm run dev"));
    return 0;
  }
  const data = join(options.data, "dev");
  const { sandboxesMax, release } = await prepare({ ...options, data });
  const { key, secret } = secretsOf(options.data);
  const code = await serve({
    ...{ data, sandboxesMax, key, secret },
    startFront: (bindings) => WranglerDev.start({ ...options, data }, bindings),
    ready: (url) => {
      process.stdout.write(`ready on ${url}\n`);
      say(`reloads at each change; try it:\n${firstCommand(url, options.data)}`);
    },
  });
  release();
  return code;
}

await run(dev);
process.exit();
