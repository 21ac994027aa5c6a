/**
 * Owns reading the body of a clone by hand. Does not own its form: src/protocol/git.ts; a test holds both together.
 */
import type { CloneCall } from "../../../src/protocol/git.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { pathOf, sessionOf } from "../files/query.ts";
import { callOf, kernelTextOf, numberOf, objectOf, refuse } from "../server/fields.ts";

const addressPattern = /^(https?|ssh|git|file):\/\/[^\s]+$|^[\w.-]+@[\w.-]+:[^\s]+$/;
const refPattern = /^(?!-)[^\s~^:?*[\\]+$/;
const depthMax = 1_000_000;
const timeoutMinMs = 1000;

export function readCloneCall(value: unknown): CloneCall {
  const known = ["url", "branch", "depth", "dir", "session", "credentials", "timeoutMs"];
  const { url, branch, depth, dir, session, credentials, timeoutMs } = callOf(value, known);
  return {
    url: addressOf(url),
    ...(branch === undefined ? {} : { branch: refOf(branch) }),
    ...(depth === undefined ? {} : { depth: numberOf(depth, "depth", { min: 1, max: depthMax }) }),
    ...(dir === undefined ? {} : { dir: pathOf(dir, "dir") }),
    ...(session === undefined ? {} : { session: sessionOf(session) }),
    ...(credentials === undefined ? {} : { credentials: credentialsOf(credentials) }),
    timeoutMs: numberOf(timeoutMs ?? limits.gitCloneTimeoutMs, "timeoutMs", {
      min: timeoutMinMs,
      max: limits.execTimeoutMaxMs,
    }),
  };
}

function addressOf(value: unknown): string {
  const url = kernelTextOf(value, "url", limits.gitUrlBytesMax);
  if (!addressPattern.test(url)) {
    refuse("url", "must be an https, http, ssh, git or file address, or user@host:path");
  }
  return url;
}

function refOf(value: unknown): string {
  const branch = kernelTextOf(value, "branch", limits.gitRefBytesMax);
  if (!refPattern.test(branch)) refuse("branch", "must be the name of a branch or tag");
  return branch;
}

function credentialsOf(value: unknown): { username: string; password: string } {
  const given = objectOf(value, "credentials");
  for (const key of Object.keys(given)) {
    if (key !== "username" && key !== "password") refuse(`credentials.${key}`, "is not known");
  }
  const { username, password } = given;
  return {
    username: kernelTextOf(username, "credentials.username", limits.gitSecretBytesMax),
    password: kernelTextOf(password, "credentials.password", limits.gitSecretBytesMax),
  };
}
