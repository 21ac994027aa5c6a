/**
 * The command line that a new user pastes: it creates a sandbox and runs a command in it. The shell reads the key
 * from its file, so the line contains no secret.
 */
import { relative } from "node:path";

/**
 * @param {string} url
 * @param {string} data
 */
export function firstCommand(url, data) {
  const path = relative(process.cwd(), data);
  const key = shellQuote(`${path.startsWith("..") ? data : path}/key`);
  return [
    `B=${url}/v1/sandboxes A="Authorization: Bearer $(cat ${key})" J='Content-Type: application/json';`,
    `curl -sS -H "$A" -H "$J" $B/$(curl -sS -H "$A" -H "$J" $B -d '{"waitMs":20000}'`,
    `| sed -n 's/.*"id":"\\([a-z0-9]*\\)".*/\\1/p')/exec -d '{"command":"echo hello from $(hostname)"}'`,
  ].join(" ");
}

/** @param {string} path  to be quoted inside double quotes and `$( )` */
function shellQuote(path) {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
