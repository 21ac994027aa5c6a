/**
 * Owns the names of what the simulation can break on purpose. Each must be found: else it proves nothing.
 */
export const breakages = [
  /** Commands begin whatever fence they carry. */
  "the agent ignores fences",
  /** The fence is looked at when the headers come, not when the command begins. */
  "the agent looks at the fence too early",
  /** It confirms a drain while commands still run. */
  "the agent confirms too early",
  /** It takes an older copy of the metadata over a newer one. */
  "the copy of the metadata goes back",
  /** The engine says that it ended a container, and did not. */
  "the engine ends nothing",
  /** The queue is only in memory. */
  "waiters are not written",
  "an alarm is lost",
  "a timer is lost",
  /** Control of the container goes out before its rows are on disk. */
  "an effect does not wait",
  /** Answers leave before what they tell is on disk. */
  "an answer does not wait",
  /** Keys are only in memory. */
  "keys are not written",
  /** An id that it has seen is one like any other. */
  "the agent runs an id again",
  /** A fresh instance of the object forgets the newest time, and the clock has stepped back. */
  "the clock runs backwards",
] as const;

export type Breakage = (typeof breakages)[number];
