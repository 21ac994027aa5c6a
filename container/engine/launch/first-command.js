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
  const key = `${path.startsWith("..") ? data : path}/key`;
  const head = `-sS -H "Authorization: Bearer $(cat ${quoted(key)})" -H 'Content-Type: application/json'`;
  const create = `curl ${head} ${url}/v1/sandboxes -d '{"waitMs":20000}'`;
  const id = `$(${create} | sed -n 's/.*"id":"\\([a-z0-9]*\\)".*/\\1/p')`;
  return `curl ${head} "${url}/v1/sandboxes/${id}/exec" -d '{"command":"echo hello from $(hostname)"}'`;
}

/** @param {string} path  for a place inside double quotes and a $( ) */
function quoted(path) {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
