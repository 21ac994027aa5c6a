/** Bounds the duration of a request. The timer ends with it: a running one keeps its object awake, which is billed. */
import type { AgentCallDeps } from "./agent-client.ts";

export type StartTimer = AgentCallDeps["startTimer"];

export const startNodeTimer: StartTimer = (ms, ring) => {
  const timer = setTimeout(ring, ms);
  return () => clearTimeout(timer);
};

/** The request must read its response to the end: the limit covers the body too. Objects pass a timer of their own. */
export async function withTimeout<T>(
  waitMs: number,
  request: (signal: AbortSignal) => Promise<T>,
  startTimer: StartTimer = startNodeTimer,
): Promise<T> {
  const limit = new AbortController();
  const cancel = startTimer(waitMs, () =>
    limit.abort(new Error(`no response within ${waitMs} ms`)),
  );
  try {
    return await request(limit.signal);
  } finally {
    cancel();
  }
}
