/**
 * Waits until a Worker that was just started responds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { localAddressOf } from "./address.js";
import { UserError } from "./program.js";

const readyTimeoutMs = 30_000;
const pollMs = 20;

/**
 * @param {string} base
 * @param {string} log  named in the error
 */
export async function waitUntilReady(base, log) {
  const url = new URL("/health", base);
  url.hostname = localAddressOf(url.hostname.replace(/^\[|\]$/g, ""));
  const deadline = Date.now() + readyTimeoutMs;
  let last = "nothing";
  while (Date.now() < deadline) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
      const body = await response.text();
      if (response.status === 200) return;
      const problem = configurationErrorIn(body);
      if (problem !== undefined) throw new UserError(problem);
      last = `status ${response.status}`;
    } catch (thrown) {
      if (thrown instanceof UserError) throw thrown;
      last = thrown instanceof Error ? thrown.message : String(thrown);
    }
    await sleep(pollMs);
  }
  throw new UserError(`Berth does not respond at ${url.href} (${last}). See ${log}.`);
}

/**
 * Returns the Worker's message about an invalid variable: such a Worker never becomes ready.
 * @param {string} body
 * @returns {string | undefined}
 */
function configurationErrorIn(body) {
  try {
    const { message } = JSON.parse(body).error;
    return /^BERTH_[A-Z_]+ must be /.test(message) ? message : undefined;
  } catch {
    return undefined;
  }
}
