/** `npm run bench`: installs and builds what is missing, then measures (main.ts). Arguments are passed on. */
import { build } from "../../container/launch/build.js";
import { install } from "../../container/launch/install.js";
import { runProgram } from "../../container/launch/program.js";
import { child } from "../child.js";

await runProgram(async () => {
  await install();
  await build();
  return await child(["test/bench/main.ts", ...process.argv.slice(2)]);
});
