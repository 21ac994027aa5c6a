/**
 * Owns the form of what is there when all faults are over and everything has settled.
 * Does not own how it is found out (settle.ts).
 */
export type Seen = {
  state: string;
  metadata: Record<string, string>;
  version: number;
  fence: number;
};

export type Kept = {
  /** The lines of the file that marked commands write to, in their order. */
  ran: string[];
  /** The same of the commands that say when they begin and end: `L <fence> b|e` and `U <marker> b|e`. */
  holds: string[];
  /** By path: what their bytes hash to. */
  files: Record<string, string>;
  checkpoints: string[];
};

export type Listed = { id: string; state: string; metadata: Record<string, string>; scope: string };

export type Truth = {
  /** By id, as each sandbox tells of itself. `gone`: it answers 404. */
  sandboxes: Record<string, Seen | "gone">;
  /** Of the boxes that clients work in. */
  kept: Record<string, Kept>;
  listed: Listed[];
  /** What did not come to rest in time, in words. */
  unsettled: string[];
  /** What was left after the server had ended, in words. */
  strays: string[];
};
