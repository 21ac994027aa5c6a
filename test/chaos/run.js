/**
 * `npm run chaos`: installs and builds what is missing, then runs main.ts. Arguments are passed on. As root it gets
 * its own mount namespace, so that its mounts end with it.
 */
import { build } from "../../container/launch/build.js";
import { install } from "../../container/launch/install.js";
import { runProgram } from "../../container/launch/program.js";
import { child } from "../child.js";

await runProgram(async () => {
  await install();
  await build();
  const isRoot = process.getuid?.() === 0;
  const namespace = isRoot ? ["unshare", "--mount", "--propagation", "private", "--"] : [];
  return await child(["test/chaos/main.ts", ...process.argv.slice(2)], namespace);
});
