/** Describes where commands run: user, home, workspace and environment; combines it with the cwd and env of a call. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Env } from "../../../src/protocol/fields/env.ts";
import type { IdRange } from "../../engine/jail/id-range.ts";
import { type User, withUserRights } from "../kernel/libc.ts";

/** Who a command runs as. */
export type Identity = {
  /** Commands run as this user of the machine; undefined: as the agent's own. */
  user: User | undefined;
  /** Further groups, of the machine. */
  groups: readonly number[];
  /** Paths are looked up as this user; undefined: as the agent, which may look everywhere, as root inside may. */
  lookup: User | undefined;
  name: string;
  home: string;
};

export type SandboxEnv = Identity & {
  /** Undefined: commands run as the one user only. */
  ids: IdRange | undefined;
  workspace: string;
  /** The folder in which the logs of processes are kept. */
  logs: string;
  /** What `create` was given and the settings changed, for every command. */
  env: Env;
};

/** Not /tmp, which may be memory. */
export const logsFolder = "/var/tmp";

export const defaultUser = "berth";
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Starts from nothing: no variable of the agent itself is passed on. */
export function buildEnvironment(
  { home, name, env: created }: SandboxEnv,
  env: Env | undefined,
): Env {
  return { PATH: path, HOME: home, USER: name, LANG: "C.UTF-8", ...created, ...env };
}

/** The folder to run in, checked with the command's own rights. */
export function resolveCwd({ workspace, lookup }: SandboxEnv, cwd: string | undefined): string {
  const folder = resolve(workspace, cwd ?? ".");
  const problem = withUserRights(lookup, () => findProblem(folder));
  if (problem !== undefined) {
    throw new BerthError("bad_cwd", `cwd ${folder} ${problem}. The command was not run.`, {
      hint: "Create the folder first, or choose another one.",
      facts: { field: "cwd" },
    });
  }
  return folder;
}

function findProblem(folder: string): string | undefined {
  try {
    // The dot requires the right to enter, which is what the command needs.
    statSync(`${folder}/.`);
    return undefined;
  } catch (error) {
    switch ((error as NodeJS.ErrnoException).code) {
      case "ENOENT":
        return "does not exist";
      case "ENOTDIR":
        return "is not a folder";
      case "EACCES":
        return "cannot be entered";
      default:
        return "cannot be used";
    }
  }
}
