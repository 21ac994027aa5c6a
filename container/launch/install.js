/**
 * Owns that the packages of package-lock.json are there, and only then runs npm.
 * Does not own builds. Runs before anything is installed: Node 20 and no packages.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { takeLock } from "./lock.js";
import { places, root } from "./places.js";
import { isProgram, Refusal, run, say } from "./say.js";

const waitForOtherMs = 10 * 60_000;

/** @typedef {{ version?: string, integrity?: string, optional?: boolean, link?: boolean }} Locked */

export async function install() {
  if (isInstalled(root)) return;
  mkdirSync(places.dist, { recursive: true });
  const lock = takeLock(places.checkoutLock, { waitMs: waitForOtherMs });
  if ("heldBy" in lock)
    throw new Refusal(`process ${lock.heldBy} is still installing or building here`);
  try {
    if (!isInstalled(root)) npmInstall();
  } finally {
    lock.release();
  }
}

/**
 * npm writes down what it installed as its last step, so a broken install is seen too.
 * @param {string} folder
 */
export function isInstalled(folder) {
  const recorded = join(folder, "node_modules/.package-lock.json");
  if (!existsSync(recorded)) return false;
  const wanted = packagesOf(join(folder, "package-lock.json"));
  const present = packagesOf(recorded);
  return Object.entries(wanted).every(([path, locked]) => {
    if (path === "" || locked.link) return true;
    const found = present[path];
    if (found === undefined) return locked.optional === true;
    return found.version === locked.version && found.integrity === locked.integrity;
  });
}

/**
 * @param {string} lockFile
 * @returns {Record<string, Locked>}
 */
function packagesOf(lockFile) {
  return JSON.parse(readFileSync(lockFile, "utf8")).packages ?? {};
}

function npmInstall() {
  say("installing packages (npm ci)…");
  const began = Date.now();
  // Development packages are what Berth runs with: NODE_ENV=production must not leave them out.
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const npm = process.env.npm_execpath?.endsWith("npm-cli.js")
    ? [process.execPath, process.env.npm_execpath]
    : ["npm"];
  // setpriv: whoever ends the launcher meanwhile ends npm as well.
  const done = spawnSync("setpriv", ["--pdeathsig", "TERM", "--", ...npm, ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
  });
  if (done.error) throw new Refusal(`cannot run npm: ${done.error.message}`);
  if (done.status !== 0) {
    process.stderr.write(done.stderr);
    throw new Refusal("npm ci failed; what it said stands above");
  }
  if (!isInstalled(root)) throw new Refusal("npm ci did not install what package-lock.json lists");
  say(`installed in ${((Date.now() - began) / 1000).toFixed(0)} s`);
}

if (isProgram(import.meta.url)) await run(install);
