/**
 * Owns `npm run soak`: installs and builds what is missing, then runs with the Node that the install brought.
 * Does not own the load and the look at it (main.ts). Arguments pass through.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { build } from "../../container/engine/launch/build.js";
import { install } from "../../container/engine/launch/install.js";
import { root, tools } from "../../container/engine/launch/places.js";
import { run } from "../../container/engine/launch/say.js";

await run(async () => {
  await install();
  await build();
  const main = [tools.node, join(root, "test/soak/main.ts"), ...process.argv.slice(2)];
  const child = spawn("setpriv", ["--pdeathsig", "TERM", "--", ...main], {
    cwd: root,
    stdio: "inherit",
  });
  // The terminal sends Ctrl-C to the child as well; wait for it to clean up.
  process.on("SIGINT", () => {});
  for (const signal of /** @type {const} */ (["SIGTERM", "SIGHUP"])) {
    process.on(signal, () => child.kill("SIGTERM"));
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
});
