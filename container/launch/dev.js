/**
 * `npm run dev`: Berth served by wrangler, which reloads after each source change. Its objects and sandboxes have a
 * folder of their own; the key is the same as for `npm start`.
 */
import { checkout } from "./checkout.js";
import { runServer } from "./serve.js";
import { prepareWranglerDev } from "./worker-process.js";

await runServer("npm run dev", prepareWranglerDev, {
  ...checkout,
  dataFolder: "dev",
  hint: (command) => `Reloads at each change. Try it in the folder of a repository:\n${command}`,
});
