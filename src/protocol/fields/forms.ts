/** The forms of fields, without the schema library: the command checks them, and loading schemas takes 20 ms. */

/** A letter, then letters and digits: 16 random characters, then 8 of a MAC over them. */
export const sandboxIdPattern = /^[a-z][a-z0-9]{23}$/;

export const envNamePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Text that is shown to people has no control characters. */
export const plainTextPattern = /^[^\p{Cc}]*$/u;

export const stateNames = [
  "starting",
  "running",
  "pausing",
  "paused",
  "failed",
  "destroying",
  "destroyed",
] as const;
