/**
 * Owns the wait until a Worker that was just started answers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { reachable } from "./address.js";
import { Refusal } from "./say.js";

const answersWithinMs = 30_000;
const pollMs = 20;

/**
 * @param {string} base
 * @param {string} log  where to look when it does not
 */
export async function answers(base, log) {
  const url = new URL("/health", base);
  url.hostname = reachable(url.hostname.replace(/^\[|\]$/g, ""));
  const until = Date.now() + answersWithinMs;
  let last = "nothing";
  while (Date.now() < until) {
    try {
      const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) });
      const body = await answer.text();
      if (answer.status === 200) return;
      const wrong = misconfigured(body);
      if (wrong !== undefined) throw new Refusal(wrong);
      last = `status ${answer.status}`;
    } catch (thrown) {
      if (thrown instanceof Refusal) throw thrown;
      last = thrown instanceof Error ? thrown.message : String(thrown);
    }
    await sleep(pollMs);
  }
  throw new Refusal(`Berth does not answer ${url.href} (${last}); see ${log}`);
}

/**
 * What the Worker says of a variable that it cannot read: it never will, so nobody waits for it.
 *
 * @param {string} body
 * @returns {string | undefined}
 */
function misconfigured(body) {
  try {
    const { message } = JSON.parse(body).error;
    return /^BERTH_[A-Z_]+ must be /.test(message) ? message : undefined;
  } catch {
    return undefined;
  }
}
