/** `npm start`: Berth on one machine, served by workerd with its objects on local disk. */
import { runServer } from "./serve.js";
import { prepareWorkerd } from "./worker-process.js";

await runServer("npm start", prepareWorkerd, {
  dataFolder: "",
  hint: (command, { firstRun }) => (firstRun ? `Try it:\n${command}` : undefined),
});
