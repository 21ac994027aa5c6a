/** The options that gated and idempotent verbs have in code. */

/** For gated calls: the token of a lease, or how long the call may wait for the lease of its own. */
export type GateOptions = { lease?: string; waitMs?: number; wake?: boolean };

/** A repeated call with the same key is the same call: it runs once, and its result is stored for ten minutes. */
export type IdempotentOptions = GateOptions & { idempotencyKey?: string };
