/**
 * Owns `npm run chaos`: installs and builds what is missing, then plays. Arguments pass through.
 * Does not own what is played (main.ts). Its mounts are its own: they end with it, however it ends.
 */
import { build } from "../../container/launch/build.js";
import { install } from "../../container/launch/install.js";
import { run } from "../../container/launch/say.js";
import { child } from "../child.js";

await run(async () => {
  await install();
  await build();
  const isRoot = process.getuid?.() === 0;
  const apart = isRoot ? ["unshare", "--mount", "--propagation", "private", "--"] : [];
  return await child(["test/chaos/main.ts", ...process.argv.slice(2)], apart);
});
