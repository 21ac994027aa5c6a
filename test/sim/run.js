/** `npm run sim`: installs what is missing, then runs main.ts with the same arguments. */
import { install } from "../../container/launch/install.js";
import { runProgram } from "../../container/launch/program.js";
import { child } from "../child.js";

await runProgram(async () => {
  await install();
  const main = ["--disable-warning=ExperimentalWarning", "test/sim/main.ts"];
  return await child([...main, ...process.argv.slice(2)]);
});
