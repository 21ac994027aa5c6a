/**
 * Owns the time limit of one question to where containers are. It ends with the answer: a limit that went on would keep
 * its object awake, which is billed.
 */
import type { AgentReach } from "./agent-client.ts";

export type Timer = AgentReach["timer"];

const cleared: Timer = (ms, ring) => {
  const timer = setTimeout(ring, ms);
  return () => clearTimeout(timer);
};

/** The question must read its answer to the end, for the limit holds until then. An object has a timer of its own. */
export async function within<T>(
  waitMs: number,
  ask: (signal: AbortSignal) => Promise<T>,
  timer: Timer = cleared,
): Promise<T> {
  const limit = new AbortController();
  const cancel = timer(waitMs, () => limit.abort(new Error(`no answer in ${waitMs} ms`)));
  try {
    return await ask(limit.signal);
  } finally {
    cancel();
  }
}
