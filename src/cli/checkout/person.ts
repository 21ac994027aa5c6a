/** Names the person who works in a checkout, so that each has a sandbox of their own: the same on all their machines. */
import { hostname, userInfo } from "node:os";
import { runGit } from "./git.ts";

/** `BERTH_USER`, or the address with which git signs commits, or the user of this machine. */
export function readPerson(root: string, env: NodeJS.ProcessEnv): string {
  const given = env.BERTH_USER ?? "";
  if (given !== "") return given;
  const email = runGit(root, ["config", "user.email"]).stdout.trim();
  return email === "" ? `${userName()}@${hostname()}` : email.toLowerCase();
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user id without a name, as in many containers.
    return `user-${process.getuid?.() ?? 0}`;
  }
}

/** As most CI services set it. */
export function isContinuousIntegration({ CI }: NodeJS.ProcessEnv): boolean {
  return CI !== undefined && CI !== "" && CI !== "false" && CI !== "0";
}
