/**
 * `npm run dev`: Berth served by wrangler, which reloads after each source change. Its objects and sandboxes have a
 * folder of their own; the key is the same as for `npm start`.
 */
import { runServer } from "./serve.js";
import { prepareWranglerDev } from "./worker-process.js";

await runServer("npm run dev", prepareWranglerDev, {
  dataFolder: "dev",
  hint: (command) => `Reloads at each change. Try it:\n${command}`,
});
