/**
 * Owns `npm run test:docker`: finds or starts a Docker engine, makes the images where none can be fetched, runs the
 * tests of real containers, and takes away what they made. Where there is no engine it says so loudly and proves nothing.
 * Does not own the tests. Arguments pass through to vitest.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "../../container/launch/build.js";
import { install } from "../../container/launch/install.js";
import { root, tools } from "../../container/launch/places.js";
import { run, say } from "../../container/launch/say.js";
import { removeGroups, startDaemon, whyNoDaemon } from "./daemon.js";
import { Docker, dockerCommand } from "./docker.js";
import { makeBase, prepareImages } from "./images.js";

const inside = "--inside";

await run(async () => {
  const [mode, folder, ...rest] = process.argv.slice(2);
  if (mode === inside && folder !== undefined) return await withOwnDaemon(folder, rest);
  await install();
  await build();
  const temporary = mkdtempSync(join(tmpdir(), "berth-docker-"));
  try {
    return await withAnyDaemon(temporary, process.argv.slice(2));
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
});

/**
 * @param {string} folder
 * @param {string[]} args
 * @returns {Promise<number>}
 */
async function withAnyDaemon(folder, args) {
  const command = dockerCommand();
  if (command === undefined) return skipped("there is no docker command");
  const machines = new Docker(command, process.env.DOCKER_HOST);
  if (machines.answers()) return await test(machines, { folder, isOwn: false, args });
  const why = whyNoDaemon() ?? makeBase(folder);
  if (why !== undefined)
    return skipped(`no Docker engine answers, and none can be started: ${why}`);
  // A network, mounts and processes of its own: what the daemon sets up there is gone with it, however it ends. unshare
  // takes no other signal, and takes all of it along.
  const code = await child(
    "setpriv",
    [
      ...["--pdeathsig", "KILL", "--", "unshare", "--net", "--mount", "--pid", "--fork"],
      ...["--kill-child", "--mount-proc", "--", process.execPath],
      ...[fileURLToPath(import.meta.url), inside, folder, ...args],
    ],
    { endBy: "SIGKILL" },
  );
  removeGroups(folder);
  return code;
}

/**
 * @param {string} folder
 * @param {string[]} args
 */
async function withOwnDaemon(folder, args) {
  const daemon = await startDaemon(folder);
  try {
    const docker = new Docker(dockerCommand() ?? "docker", daemon.host);
    return await test(docker, { folder, isOwn: true, args });
  } finally {
    await daemon.stop();
  }
}

/**
 * @param {Docker} docker
 * @param {{ folder: string, isOwn: boolean, args: string[] }} how
 */
async function test(docker, { folder, isOwn, args }) {
  const images = prepareImages(docker, folder);
  if (typeof images === "string") return skipped(images);
  try {
    const facts = { command: docker.command, host: docker.host, isOwn, ...images.names };
    const config = join(root, "test/docker/vitest.config.ts");
    return await child(
      "setpriv",
      ["--pdeathsig", "TERM", "--", tools.node, tools.vitest, "run", "--config", config, ...args],
      // What they make beside it goes with the folder, however they end.
      { env: { BERTH_TEST_DOCKER: JSON.stringify(facts), TMPDIR: folder } },
    );
  } finally {
    images.remove();
  }
}

/** @param {string} why */
function skipped(why) {
  say(`SKIPPED. Nothing was proven of real containers: ${why}.`);
  return 0;
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {{ env?: Record<string, string>, endBy?: NodeJS.Signals }} how
 * @returns {Promise<number>}
 */
function child(program, args, { env = {}, endBy = "SIGTERM" } = {}) {
  const started = spawn(program, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  // The terminal sends Ctrl-C to all of them; wait until they have ended in order.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => started.kill(endBy));
  return new Promise((resolve, reject) => {
    started.once("error", reject);
    started.once("exit", (code) => resolve(code ?? 1));
  });
}
