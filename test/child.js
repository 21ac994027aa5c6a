/**
 * Owns the program that does the work of an npm script of the tests: it runs by the Node that the install brought, ends
 * with this process however that ends, and is waited for. Does not own what is installed and built before it.
 */
import { spawn } from "node:child_process";
import { root, tools } from "../container/launch/places.js";

/**
 * Answers with its exit code.
 * @param {string[]} args Of Node.
 * @param {string[]} inside What runs Node, where it is not to run as this process does.
 * @returns {Promise<number>}
 */
export function child(args, inside = []) {
  const command = [...inside, tools.node, ...args];
  const started = spawn("setpriv", ["--pdeathsig", "TERM", "--", ...command], {
    cwd: root,
    stdio: "inherit",
  });
  // The terminal sends Ctrl-C to the child as well, which ends its work in order; wait for it.
  process.on("SIGINT", () => {});
  for (const signal of /** @type {const} */ (["SIGTERM", "SIGHUP"])) {
    process.on(signal, () => started.kill("SIGTERM"));
  }
  return new Promise((resolve, reject) => {
    started.once("error", reject);
    started.once("exit", (code) => resolve(code ?? 1));
  });
}
