/** The options that gated and idempotent verbs have in code. */

/** For gated calls: the lease, and whether they may wait for one or start a container. */
export type GateOptions = {
  /** The token of the lease that the caller holds. */
  lease?: string | undefined;
  /** Milliseconds that the call may wait for a lease of its own. */
  waitMs?: number | undefined;
  /** Whether the call may start a paused sandbox. */
  wake?: boolean | undefined;
};

/** A repeated call with the same key is the same call: it runs once, and its result is stored for ten minutes. */
export type IdempotentOptions = GateOptions & {
  idempotencyKey?: string | undefined;
  /** A secret name of your choice, 16 to 64 characters: `cancelCall` ends a command by it. */
  callId?: string | undefined;
};
