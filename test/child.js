/** Runs the program of an npm script of the tests with the installed Node, and ends it when this process ends. */
import { spawn } from "node:child_process";
import { root, tools } from "../container/launch/paths.js";

const endSignals = /** @type {const} */ (["SIGTERM", "SIGHUP"]);

/**
 * @param {string[]} args The arguments of Node.
 * @param {string[]} wrapper A program that runs Node in another way than this process runs, with its arguments.
 * @returns {Promise<number>} The exit code.
 */
export function child(args, wrapper = []) {
  const command = [...wrapper, tools.node, ...args];
  const started = spawn("setpriv", ["--pdeathsig", "TERM", "--", ...command], {
    cwd: root,
    stdio: "inherit",
  });
  // The terminal sends Ctrl-C to the child as well, which then ends in order; this process waits for it.
  const ignore = () => {};
  const end = () => void started.kill("SIGTERM");
  process.on("SIGINT", ignore);
  for (const signal of endSignals) process.on(signal, end);
  return new Promise((resolve, reject) => {
    started.once("error", reject);
    started.once("exit", (code) => {
      process.off("SIGINT", ignore);
      for (const signal of endSignals) process.off(signal, end);
      resolve(code ?? 1);
    });
  });
}
