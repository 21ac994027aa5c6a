/**
 * Installs the packages of package-lock.json if they are missing or outdated. It runs before anything is installed,
 * so it needs only Node 20 and no packages.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withCheckoutLock } from "./lock.js";
import { root } from "./paths.js";
import { isMainModule, printStatus, runProgram, UserError } from "./program.js";

/** @typedef {{ version?: string, integrity?: string, optional?: boolean, link?: boolean, optionalDependencies?: Record<string, string> }} Locked */

export async function install() {
  if (isInstalled(root)) return;
  await withCheckoutLock(() => {
    if (!isInstalled(root)) npmInstall();
  });
}

/**
 * npm writes its own lock file as its last step, so an interrupted install counts as missing.
 * @param {string} folder
 */
export function isInstalled(folder) {
  const recorded = join(folder, "node_modules/.package-lock.json");
  if (!existsSync(recorded)) return false;
  const required = packagesOf(join(folder, "package-lock.json"));
  const present = packagesOf(recorded);
  const own = Object.keys(required[""]?.optionalDependencies ?? {}).map(
    (name) => `node_modules/${name}`,
  );
  return Object.entries(required).every(([path, locked]) => {
    if (path === "" || locked.link) return true;
    const found = present[path];
    // Optional for users of the npm package only, who may want no server.
    if (found === undefined) return locked.optional === true && !own.includes(path);
    return found.version === locked.version && found.integrity === locked.integrity;
  });
}

/** @type {(lockFile: string) => Record<string, Locked>} */
function packagesOf(lockFile) {
  return JSON.parse(readFileSync(lockFile, "utf8")).packages ?? {};
}

function npmInstall() {
  printStatus("Installing packages (npm ci) …");
  const startedAt = Date.now();
  // Berth runs with its development packages, so NODE_ENV=production must not leave them out.
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const npm = process.env.npm_execpath?.endsWith("npm-cli.js")
    ? [process.execPath, process.env.npm_execpath]
    : ["npm"];
  // On Linux setpriv ends npm together with the launcher.
  const guard = process.platform === "linux" ? ["setpriv", "--pdeathsig", "TERM", "--"] : [];
  const [program = "npm", ...programArgs] = [...guard, ...npm, ...args];
  const result = spawnSync(program, programArgs, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
  });
  if (result.error) throw new UserError(`Cannot run npm: ${result.error.message}`);
  if (result.status !== 0) {
    process.stderr.write(result.stderr);
    throw new UserError("`npm ci` failed. Its output is above.");
  }
  if (!isInstalled(root))
    throw new UserError("`npm ci` did not install what package-lock.json lists.");
  printStatus(`Installed packages in ${((Date.now() - startedAt) / 1000).toFixed(0)} s.`);
}

if (isMainModule(import.meta.url)) await runProgram(install);
