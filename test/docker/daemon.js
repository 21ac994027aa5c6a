/**
 * A Docker engine for the duration of the tests, inside namespaces that run.js creates. All its data is in one
 * folder.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Docker, dockerCommand } from "./docker.js";

const readyTimeoutMs = 60_000;
const endTimeoutMs = 30_000;
const programs = ["dockerd", "containerd", "runc", "iptables", "ip", "unshare", "setpriv"];
/** Set explicitly: a first start does not report its gateway otherwise, and the platform's local mode needs it. */
const bridge = "172.17.0.1/16";
/** Hosts that exist only in these tests and represent the internet. */
const hosts = "127.0.0.1 localhost good.test other.test\n";

/** @returns {string | undefined} */
export function daemonObstacle() {
  if (process.getuid?.() !== 0) return "starting one needs root";
  const missing = programs.filter((name) => spawnSync("which", [name]).status !== 0);
  return missing.length === 0 ? undefined : `${missing.join(", ")} not found`;
}

/** @param {string} folder */
export async function startDaemon(folder) {
  const pathOf = (/** @type {string} */ name) => join(folder, name);
  const log = openSync(pathOf("dockerd.log"), "a");
  for (const name of ["data", "exec"]) mkdirSync(pathOf(name), { recursive: true });
  writeFileSync(pathOf("hosts"), hosts);
  // Its sockets and PID files would otherwise be in the machine's /run.
  call("mount", ["-t", "tmpfs", "tmpfs", "/run"]);
  call("mount", ["--bind", pathOf("hosts"), "/etc/hosts"]);
  call("ip", ["link", "set", "lo", "up"]);
  const host = `unix://${pathOf("docker.sock")}`;
  const daemon = spawn(
    "dockerd",
    [
      ...["--host", host, "--data-root", pathOf("data"), "--exec-root", pathOf("exec")],
      ...["--pidfile", pathOf("pid"), "--cgroup-parent", groupsOf(folder), "--bip", bridge],
    ],
    { stdio: ["ignore", log, log] },
  );
  const ended = new Promise((resolve) => daemon.once("exit", resolve));
  const docker = new Docker(dockerCommand() ?? "docker", host);
  const limit = Date.now() + readyTimeoutMs;
  while (!docker.isReachable()) {
    if (daemon.exitCode !== null || Date.now() > limit) {
      throw new Error(`dockerd did not start:\n${readFileSync(pathOf("dockerd.log"), "utf8")}`);
    }
    await pause(100);
  }
  return {
    host,
    async stop() {
      daemon.kill("SIGTERM");
      await Promise.race([ended, pause(endTimeoutMs, undefined, { ref: false })]);
      daemon.kill("SIGKILL");
    },
  };
}

/** @param {string} folder */
const groupsOf = (folder) => `/${basename(folder)}`;

/**
 * Removes its cgroups after its end, from outside its namespaces; the kernel keeps them otherwise.
 * @param {string} folder
 */
export function removeGroups(folder) {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  for (const [, mount = "", type] of mounts.map((line) => line.split(" "))) {
    if (type !== "cgroup" && type !== "cgroup2") continue;
    removeTree(mount + groupsOf(folder));
  }
}

/** @param {string} group */
function removeTree(group) {
  if (!existsSync(group)) return;
  for (const entry of readdirSync(group, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(group, entry.name));
  }
  rmdirSync(group);
}

/**
 * @param {string} program
 * @param {string[]} args
 */
function call(program, args) {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${stderr}`);
}
