/**
 * Owns `npm run sim`: installs what is missing, then plays.
 * Does not own what is played (main.ts). Arguments pass through.
 */
import { install } from "../../container/launch/install.js";
import { run } from "../../container/launch/say.js";
import { child } from "../child.js";

await run(async () => {
  await install();
  const main = ["--disable-warning=ExperimentalWarning", "test/sim/main.ts"];
  return await child([...main, ...process.argv.slice(2)]);
});
