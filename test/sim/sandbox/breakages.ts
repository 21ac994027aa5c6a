/** The defects that the simulation can introduce on purpose. Each must be found, or the simulation proves nothing. */
const found = {
  /** Commands start with any fence. */
  "the agent ignores fences": "nothing begins below the fence",
  /** The fence is checked when the headers arrive, not when the command starts. */
  "the agent looks at the fence too early": "nothing begins below the fence",
  /** It confirms a drain while commands still run. */
  "the agent confirms too early": "nothing runs after its lease was lost",
  /** It accepts an older copy of the metadata. */
  "the copy of the metadata goes back": "the copy never goes back",
  /** The engine claims to have ended a container, and did not. */
  "the engine ends nothing": "destroyed is final",
  /** The queue is only in memory. */
  "waiters are not written": "memory holds no fact of its own",
  "an alarm is lost": "what passes has a deadline",
  "a timer is lost": "nothing waits for ever",
  /** A request to the container is sent before its rows are on disk. */
  "an effect does not wait": "rows come before verbs",
  /** Responses are sent before what they report is on disk. */
  "an answer does not wait": "what was answered stays",
  /** Keys are only in memory. */
  "keys are not written": "no key runs twice",
  /** A fresh instance forgets the newest time, and the clock has stepped back. */
  "the clock runs backwards": "memory holds no fact of its own",
} as const;

export type Breakage = keyof typeof found;
export const breakages = Object.keys(found) as Breakage[];

/** The rule that must find each: a different violation proves nothing. */
export const foundBy: Readonly<Record<Breakage, string>> = found;
