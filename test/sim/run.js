/**
 * Owns `npm run sim`: installs what is missing, then plays with the Node that the install brought.
 * Does not own what is played (main.ts). Arguments pass through.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { install } from "../../container/engine/launch/install.js";
import { root, tools } from "../../container/engine/launch/places.js";
import { run } from "../../container/engine/launch/say.js";

await run(async () => {
  await install();
  const main = join(root, "test/sim/main.ts");
  const args = ["--disable-warning=ExperimentalWarning", main, ...process.argv.slice(2)];
  const child = spawn("setpriv", ["--pdeathsig", "TERM", "--", tools.node, ...args], {
    cwd: root,
    stdio: "inherit",
  });
  // The terminal sends Ctrl-C to the child as well; wait for it.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
});
