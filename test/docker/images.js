/**
 * Owns the two images that tests of real containers need beside our own: the base, and the network companion that the
 * platform's local mode wants. They are fetched; where no registry can be reached, they are made here.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, tools } from "../../container/launch/places.js";
import { say } from "../../container/launch/say.js";

/** @typedef {import("./docker.js").Docker} Docker */

const base = "debian:bookworm-slim";
const release = "bookworm";
const madeBase = "berth-test-base:made";
const madeCompanion = "berth-test-companion:made";
const makeMs = 10 * 60_000;
/** What the companion needs, and what the tests run in a sandbox. */
const packages = "ca-certificates,curl,git,iptables,openssl,procps";

/**
 * A root of Debian's packages as a tar, before the network is left behind; why not, where that fails.
 * @param {string} folder
 * @returns {string | undefined}
 */
export function makeBase(folder) {
  if (spawnSync("which", ["debootstrap"]).status !== 0) return "debootstrap cannot be found";
  say("no image registry is asked: making a base of Debian's packages…");
  const began = Date.now();
  const tree = join(folder, "base");
  const options = ["--variant=minbase", `--include=${packages}`];
  const made = spawnSync("debootstrap", [...options, release, tree], { timeout: makeMs });
  if (made.status !== 0)
    return `debootstrap failed: ${String(made.stdout).trim().split("\n").at(-1)}`;
  const without = ["--exclude=./var/cache/apt", "--exclude=./var/lib/apt/lists"];
  const packed = spawnSync("tar", ["-C", tree, ...without, "-cf", baseTar(folder), "."]);
  if (packed.status !== 0) return `tar failed: ${packed.stderr}`;
  say(`made a base in ${Math.round((Date.now() - began) / 1000)} s`);
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
    if (why !== undefined) return `the base image can neither be fetched nor made: ${why}`;
  }
  docker.say("import", baseTar(folder), madeBase);
  makeCompanion(docker, join(folder, "companion"));
  return {
    names: { base: madeBase, companion: madeCompanion },
    remove: () => docker.call(["rmi", "--force", madeCompanion, madeBase]),
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
    `FROM ${madeBase}`,
    `COPY node ${sources.join(" ")} /companion/`,
    'ENTRYPOINT ["/companion/node", "/companion/companion.ts"]',
  ];
  writeFileSync(join(folder, "Dockerfile"), `${lines.join("\n")}\n`);
  docker.say("build", "--quiet", "--tag", madeCompanion, folder);
}

/** @param {string} folder */
function baseTar(folder) {
  return join(folder, "base.tar");
}
