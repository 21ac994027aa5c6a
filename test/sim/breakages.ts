/**
 * Owns the names of what the simulation can break on purpose. Each must be found: else it proves nothing.
 */
const found = {
  /** Commands begin whatever fence they carry. */
  "the agent ignores fences": "nothing begins below the fence",
  /** The fence is looked at when the headers come, not when the command begins. */
  "the agent looks at the fence too early": "nothing begins below the fence",
  /** It confirms a drain while commands still run. */
  "the agent confirms too early": "nothing runs after its lease was lost",
  /** It takes an older copy of the metadata over a newer one. */
  "the copy of the metadata goes back": "the copy never goes back",
  /** The engine says that it ended a container, and did not. */
  "the engine ends nothing": "destroyed is final",
  /** The queue is only in memory. */
  "waiters are not written": "memory holds no fact of its own",
  "an alarm is lost": "what passes has a deadline",
  "a timer is lost": "nothing waits for ever",
  /** Control of the container goes out before its rows are on disk. */
  "an effect does not wait": "rows come before verbs",
  /** Answers leave before what they tell is on disk. */
  "an answer does not wait": "what was answered stays",
  /** Keys are only in memory. */
  "keys are not written": "no key runs twice",
  /** A fresh instance of the object forgets the newest time, and the clock has stepped back. */
  "the clock runs backwards": "memory holds no fact of its own",
} as const;

export type Breakage = keyof typeof found;
export const breakages = Object.keys(found) as Breakage[];

/** The rule by which each is found: one that is broken by something else is no proof. */
export const foundBy: Readonly<Record<Breakage, string>> = found;
