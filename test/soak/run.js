/**
 * Owns `npm run soak`: installs and builds what is missing, then runs.
 * Does not own the load and the look at it (main.ts). Arguments pass through.
 */
import { build } from "../../container/launch/build.js";
import { install } from "../../container/launch/install.js";
import { run } from "../../container/launch/say.js";
import { child } from "../child.js";

await run(async () => {
  await install();
  await build();
  return await child(["test/soak/main.ts", ...process.argv.slice(2)]);
});
