/** Calls the docker command, with a time limit each. */
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const callTimeoutMs = 120_000;
const versionTimeoutMs = 10_000;
/** The command of the machine's own engine comes first: a newer one may lack parts that this engine needs. */
const preferredFolder = "/usr/bin";

/** @returns {string | undefined} */
export function dockerCommand() {
  const folders = [preferredFolder, ...(process.env.PATH ?? "").split(delimiter)];
  return folders.map((folder) => join(folder, "docker")).find(isProgram);
}

export class Docker {
  /**
   * @param {string} command
   * @param {string | undefined} host  of the engine; undefined: the command's own
   */
  constructor(command, host) {
    this.command = command;
    this.host = host;
  }

  isReachable() {
    return this.call(["version", "--format", "{{.Server.Version}}"], { limitMs: versionTimeoutMs })
      .ok;
  }

  /**
   * @param {string[]} args
   * @param {{ limitMs?: number, cwd?: string }} options
   * @returns {{ ok: boolean, stdout: string, stderr: string }}
   */
  call(args, { limitMs = callTimeoutMs, cwd } = {}) {
    const { status, stdout, stderr } = spawnSync(this.command, args, {
      encoding: "utf8",
      timeout: limitMs,
      cwd,
      env: {
        ...process.env,
        ...(this.host === undefined ? {} : { DOCKER_HOST: this.host }),
        DOCKER_BUILDKIT: "1",
      },
    });
    return { ok: status === 0, stdout: (stdout ?? "").trim(), stderr: (stderr ?? "").trim() };
  }

  /**
   * Returns its output; throws if it fails.
   * @param {string[]} args
   */
  run(...args) {
    const { ok, stdout, stderr } = this.call(args);
    if (!ok) throw new Error(`docker ${args[0]} failed: ${stderr}`);
    return stdout;
  }

  /**
   * Returns its output by line.
   * @param {string[]} args
   */
  lines(...args) {
    return this.run(...args)
      .split("\n")
      .filter((line) => line !== "");
  }
}

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
