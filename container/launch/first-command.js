/**
 * Owns the line that a newcomer pastes: it makes a sandbox and runs a command in it.
 * The key is read by the shell that runs it, so the line itself is no secret.
 */
import { relative } from "node:path";

/**
 * @param {string} url
 * @param {string} data
 */
export function firstCommand(url, data) {
  const path = relative(process.cwd(), data);
  const key = quoted(`${path.startsWith("..") ? data : path}/key`);
  return [
    `B=${url}/v1/sandboxes A="Authorization: Bearer $(cat ${key})" J='Content-Type: application/json';`,
    `curl -sS -H "$A" -H "$J" $B/$(curl -sS -H "$A" -H "$J" $B -d '{"waitMs":20000}'`,
    `| sed -n 's/.*"id":"\\([a-z0-9]*\\)".*/\\1/p')/exec -d '{"command":"echo hello from $(hostname)"}'`,
  ].join(" ");
}

/** @param {string} path  for a place inside double quotes and a $( ) */
function quoted(path) {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
