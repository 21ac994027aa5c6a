/**
 * Owns calls of the docker command: which one, to which engine, each with a limit.
 * Does not own what is asked of it.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const callMs = 120_000;
const answerMs = 10_000;
/** The one that comes with the machine's own engine first: a newer one may miss parts that its engine has no use for. */
const usualFolder = "/usr/bin";

/** @returns {string | undefined} */
export function dockerCommand() {
  const folders = [usualFolder, ...(process.env.PATH ?? "").split(delimiter)];
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

  answers() {
    return this.call(["version", "--format", "{{.Server.Version}}"], { limitMs: answerMs }).ok;
  }

  /**
   * @param {string[]} args
   * @param {{ limitMs?: number, cwd?: string }} options
   * @returns {{ ok: boolean, stdout: string, stderr: string }}
   */
  call(args, { limitMs = callMs, cwd } = {}) {
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
   * What it said; throws where it failed.
   * @param {string[]} args
   */
  say(...args) {
    const { ok, stdout, stderr } = this.call(args);
    if (!ok) throw new Error(`docker ${args[0]} failed: ${stderr}`);
    return stdout;
  }

  /**
   * What it said, a line each.
   * @param {string[]} args
   */
  lines(...args) {
    return this.say(...args)
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
