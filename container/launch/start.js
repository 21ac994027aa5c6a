/** `npm start`: Berth on one machine, served by workerd with its objects on local disk. */
import { runServer } from "./serve.js";
import { startWorkerd } from "./worker-process.js";

await runServer("npm start", startWorkerd, {
  dataFolder: "",
  hint: (command, { firstRun }) => (firstRun ? `Try it:\n${command}` : undefined),
});
