/**
 * `npm run test:docker`: finds or starts a Docker engine, builds missing images, runs the tests of real containers,
 * and removes everything it created. Without an engine it reports that it proves nothing. Arguments are passed on to
 * vitest.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, buildImageAgent } from "../../container/launch/build.js";
import { install } from "../../container/launch/install.js";
import { root, tools } from "../../container/launch/paths.js";
import { printStatus, runProgram } from "../../container/launch/program.js";
import { daemonObstacle, removeGroups, startDaemon } from "./daemon.js";
import { Docker, dockerCommand } from "./docker.js";
import { makeBase, prepareImages } from "./images.js";

const inside = "--inside";

await runProgram(async () => {
  const [mode, folder, ...rest] = process.argv.slice(2);
  if (mode === inside && folder !== undefined) return await withOwnDaemon(folder, rest);
  await install();
  await build();
  await buildImageAgent();
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
  if (command === undefined) return skip("there is no docker command");
  const machineDocker = new Docker(command, process.env.DOCKER_HOST);
  if (machineDocker.isReachable()) return await test(machineDocker, { folder, isOwn: false, args });
  const why = daemonObstacle() ?? makeBase(folder);
  if (why !== undefined) return skip(`no Docker engine responds, and none can be started: ${why}`);
  // Namespaces of its own, so that everything that the daemon sets up disappears with it. `unshare` reacts only to
  // SIGKILL and ends all of it.
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
 * @param {{ folder: string, isOwn: boolean, args: string[] }} options
 */
async function test(docker, { folder, isOwn, args }) {
  const images = prepareImages(docker, folder);
  if (typeof images === "string") return skip(images);
  try {
    const facts = { command: docker.command, host: docker.host, isOwn, ...images.names };
    const config = join(root, "test/docker/vitest.config.ts");
    return await child(
      "setpriv",
      ["--pdeathsig", "TERM", "--", tools.node, tools.vitest, "run", "--config", config, ...args],
      // Temporary files are removed with the folder, however the tests end.
      { env: { BERTH_TEST_DOCKER: JSON.stringify(facts), TMPDIR: folder } },
    );
  } finally {
    images.remove();
  }
}

/** @param {string} why */
function skip(why) {
  printStatus(`SKIPPED: Real containers were not tested (${why}).`);
  return 0;
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {{ env?: Record<string, string>, endBy?: NodeJS.Signals }} options
 * @returns {Promise<number>}
 */
function child(program, args, { env = {}, endBy = "SIGTERM" } = {}) {
  const started = spawn(program, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  // The terminal sends Ctrl-C to all processes; this one waits until they have ended in order.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => started.kill(endBy));
  return new Promise((resolve, reject) => {
    started.once("error", reject);
    started.once("exit", (code) => resolve(code ?? 1));
  });
}
