/** `npm start`: Berth on one machine, served by workerd with its objects on local disk. */
import { checkout } from "./checkout.js";
import { runServer } from "./serve.js";
import { prepareWorkerd } from "./worker-process.js";

await runServer("npm start", prepareWorkerd, {
  ...checkout,
  dataFolder: "",
  hint: (command, { firstRun }) =>
    firstRun ? `Try it in the folder of a repository:\n${command}` : undefined,
});
