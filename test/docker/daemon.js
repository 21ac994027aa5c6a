/**
 * Owns a Docker engine for the length of the tests, in namespaces that were made for it: its start, its end.
 * Does not own these namespaces: run.js makes them. Everything that it keeps lies in one folder.
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

const answersWithinMs = 60_000;
const endsWithinMs = 30_000;
const programs = ["dockerd", "containerd", "runc", "iptables", "ip", "unshare", "setpriv"];
/** Said by hand: a first start does not tell its gateway otherwise, and the platform's local mode asks for it. */
const bridge = "172.17.0.1/16";
/** Hosts that only these tests know; they stand for the internet. */
const hosts = "127.0.0.1 localhost good.test other.test\n";

/** @returns {string | undefined} */
export function whyNoDaemon() {
  if (process.getuid?.() !== 0) return "that needs root";
  const missing = programs.filter((name) => spawnSync("which", [name]).status !== 0);
  return missing.length === 0 ? undefined : `${missing.join(", ")} cannot be found`;
}

/** @param {string} folder */
export async function startDaemon(folder) {
  const at = (/** @type {string} */ name) => join(folder, name);
  const log = openSync(at("dockerd.log"), "a");
  for (const name of ["data", "exec"]) mkdirSync(at(name), { recursive: true });
  writeFileSync(at("hosts"), hosts);
  // Its sockets and notes would lie in the machine's own /run.
  call("mount", ["-t", "tmpfs", "tmpfs", "/run"]);
  call("mount", ["--bind", at("hosts"), "/etc/hosts"]);
  call("ip", ["link", "set", "lo", "up"]);
  const host = `unix://${at("docker.sock")}`;
  const daemon = spawn(
    "dockerd",
    [
      ...["--host", host, "--data-root", at("data"), "--exec-root", at("exec")],
      ...["--pidfile", at("pid"), "--cgroup-parent", groupsOf(folder), "--bip", bridge],
    ],
    { stdio: ["ignore", log, log] },
  );
  const ended = new Promise((resolve) => daemon.once("exit", resolve));
  const docker = new Docker(dockerCommand() ?? "docker", host);
  const limit = Date.now() + answersWithinMs;
  while (!docker.answers()) {
    if (daemon.exitCode !== null || Date.now() > limit) {
      throw new Error(`dockerd did not come up:\n${readFileSync(at("dockerd.log"), "utf8")}`);
    }
    await pause(100);
  }
  return {
    host,
    async stop() {
      daemon.kill("SIGTERM");
      await Promise.race([ended, pause(endsWithinMs, undefined, { ref: false })]);
      daemon.kill("SIGKILL");
    },
  };
}

/** @param {string} folder */
const groupsOf = (folder) => `/${basename(folder)}`;

/**
 * From outside of its namespaces, when all of it has ended: the kernel keeps groups until somebody removes them.
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
