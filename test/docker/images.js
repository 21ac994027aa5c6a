/**
 * The two images that tests of real containers need besides Berth's own: the base, and the network companion of the
 * platform's local mode. They are pulled, or built here if no registry can be reached.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, tools } from "../../container/launch/paths.js";
import { printStatus } from "../../container/launch/program.js";

/** @typedef {import("./docker.js").Docker} Docker */

const base = "debian:bookworm-slim";
const release = "bookworm";
const builtBase = "berth-test-base:made";
const builtCompanion = "berth-test-companion:made";
const buildTimeoutMs = 10 * 60_000;
/** Packages of the companion, and programs that the tests run in a sandbox. */
const packages = "ca-certificates,curl,git,iptables,openssl,procps";

/**
 * Builds a root from Debian packages as a tar, while the network is still available. Returns why that failed.
 * @param {string} folder
 * @returns {string | undefined}
 */
export function makeBase(folder) {
  if (spawnSync("which", ["debootstrap"]).status !== 0) return "debootstrap was not found";
  printStatus("Building a base image from Debian packages …");
  const startedAt = Date.now();
  const tree = join(folder, "base");
  const options = ["--variant=minbase", `--include=${packages}`];
  const built = spawnSync("debootstrap", [...options, release, tree], { timeout: buildTimeoutMs });
  if (built.status !== 0)
    return `debootstrap failed: ${String(built.stdout).trim().split("\n").at(-1)}`;
  const without = ["--exclude=./var/cache/apt", "--exclude=./var/lib/apt/lists"];
  const packed = spawnSync("tar", ["-C", tree, ...without, "-cf", baseTar(folder), "."]);
  if (packed.status !== 0) return `tar failed: ${packed.stderr}`;
  printStatus(`Built a base image in ${Math.round((Date.now() - startedAt) / 1000)} s.`);
  return undefined;
}

/**
 * @param {Docker} docker
 * @param {string} folder
 */
export function prepareImages(docker, folder) {
  if (!existsSync(baseTar(folder))) {
    if (docker.call(["pull", "--quiet", base]).ok) return { names: {}, remove: () => {} };
    const why = makeBase(folder);
    if (why !== undefined) return `the base image can neither be pulled nor built: ${why}`;
  }
  docker.run("import", baseTar(folder), builtBase);
  makeCompanion(docker, join(folder, "companion"));
  return {
    names: { base: builtBase, companion: builtCompanion },
    remove: () => docker.call(["rmi", "--force", builtCompanion, builtBase]),
  };
}

/**
 * @param {Docker} docker
 * @param {string} folder
 */
function makeCompanion(docker, folder) {
  mkdirSync(folder);
  const sources = ["companion.ts", "authority.ts"];
  for (const name of sources) copyFileSync(join(root, "test/docker", name), join(folder, name));
  copyFileSync(realpathSync(tools.node), join(folder, "node"));
  const lines = [
    `FROM ${builtBase}`,
    `COPY node ${sources.join(" ")} /companion/`,
    'ENTRYPOINT ["/companion/node", "/companion/companion.ts"]',
  ];
  writeFileSync(join(folder, "Dockerfile"), `${lines.join("\n")}\n`);
  docker.run("build", "--quiet", "--tag", builtCompanion, folder);
}

/** @param {string} folder */
function baseTar(folder) {
  return join(folder, "base.tar");
}
