/**
 * Owns where commands run and with what environment: user, home, workspace, the fixed part of env.
 * Does not own the call's own cwd and env beyond joining them to these.
 */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Env } from "../../../src/protocol/fields/env.ts";
import { type User, withRightsOf } from "../kernel/libc.ts";

export type Place = {
  /** Whom commands run as; undefined: the agent's own user. */
  user: User | undefined;
  home: string;
  workspace: string;
  /** Where the logs of processes are kept. */
  logs: string;
  /** Given at create, for every command. */
  env: Env;
};

/** On disk: `/tmp` may be memory. */
export const logsFolder = "/var/tmp";

const userName = "berth";
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Built from nothing: not one variable of the agent's own comes along. */
export function environmentOf(place: Place, env: Env | undefined): Env {
  return { PATH: path, HOME: place.home, USER: userName, LANG: "C.UTF-8", ...place.env, ...env };
}

/** The folder to run in, looked at with the command's own rights. */
export function folderOf(place: Place, cwd: string | undefined): string {
  const folder = resolve(place.workspace, cwd ?? ".");
  const why = withRightsOf(place.user, () => whyNot(folder));
  if (why !== undefined) {
    throw new BerthError("bad_cwd", `cwd ${folder} ${why}; the command was not run`, {
      hint: "create the folder first, or give another one",
      facts: { field: "cwd" },
    });
  }
  return folder;
}

function whyNot(folder: string): string | undefined {
  try {
    // The dot demands the right to enter, which is what the command needs.
    statSync(`${folder}/.`);
    return undefined;
  } catch (error) {
    switch ((error as NodeJS.ErrnoException).code) {
      case "ENOENT":
        return "does not exist";
      case "ENOTDIR":
        return "is no folder";
      case "EACCES":
        return "may not be entered";
      default:
        return "cannot be used";
    }
  }
}
