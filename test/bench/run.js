/**
 * Owns `npm run bench`: installs and builds what is missing, then measures.
 * Does not own what is measured (main.ts). Arguments pass through.
 */
import { build } from "../../container/launch/build.js";
import { install } from "../../container/launch/install.js";
import { run } from "../../container/launch/say.js";
import { child } from "../child.js";

await run(async () => {
  await install();
  await build();
  return await child(["test/bench/main.ts", ...process.argv.slice(2)]);
});
