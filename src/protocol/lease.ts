/** Schemas of the lease of a sandbox. Its rules are in core/lease. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { flagSchema, plainText, wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";

const holderSchema = plainText(limits.holderCharsMax).min(1);

/** Holders see it in their terminals. */
export const breakReasonSchema = plainText(limits.reasonCharsMax);

export const ticketSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{16,64}$/, "must be 16 to 64 letters, digits, _ or -");

export const acquireCallSchema = component("LeaseAcquire", {
  holder: holderSchema.default("anonymous").describe("The holder's name, which waiters see."),
  ttlMs: wholeNumber(limits.leaseTtlMinMs, limits.leaseTtlMaxMs)
    .default(limits.leaseTtlMs)
    .describe("Milliseconds that the lease lasts without a renewal."),
  waitMs: wholeNumber(0, limits.waitMaxMs)
    .default(0)
    .describe("Milliseconds that this call may wait."),
  queueMs: wholeNumber(0, limits.leaseQueueMaxMs)
    .optional()
    .describe("Milliseconds in the queue, over several calls; `waitMs` by default."),
  ticket: ticketSchema
    .optional()
    .describe("A secret of your choice: a repeated call keeps its place or its lease."),
});

export const renewCallSchema = component("LeaseRenew", {
  ttlMs: wholeNumber(limits.leaseTtlMinMs, limits.leaseTtlMaxMs).optional(),
});

export const releaseQuerySchema = z.strictObject({
  force: flagSchema
    .default(false)
    .describe("Releases even while commands of the lease run, and ends them."),
  break: flagSchema.default(false).describe("Revokes the lease of its holder."),
  reason: breakReasonSchema
    .optional()
    .describe("With `break`: the reason, shown to the holder and in events."),
});

export const connectLeaseQuerySchema = z.strictObject({
  holder: holderSchema.optional().describe("The holder's name, which waiters see."),
  ct: z.string().optional().describe("A connect ticket, instead of a key."),
});

export const leaseSchema = component("Lease", {
  token: z.string().describe("Send it in the header `Berth-Lease` of gated calls."),
  fence: z.int().describe("Grows with each lease of the sandbox."),
  holder: z.string().describe("The name of the holder."),
  acquiredAt: z.iso.datetime().describe("ISO 8601."),
  expiresAt: z.iso.datetime().describe("ISO 8601; a renewal moves it."),
});

export const leaseQueuedSchema = component("LeaseQueued", {
  ticket: z.string(),
  position: z.int().describe("0 is next."),
  pollWithinMs: z
    .int()
    .describe("Poll again within this many milliseconds, or the place in the queue is lost."),
});

export const leaseReleasedSchema = component("LeaseReleased", {
  state: z.enum(["released", "draining"]),
});

export const leaseStateSchema = component("LeaseState", {
  state: z
    .enum(["free", "offered", "held", "draining"])
    .describe("`held` while somebody works; `draining` while the work of a lost lease is ended."),
  fence: z.int().describe("Grows with each lease of the sandbox."),
  holder: z
    .string()
    .optional()
    .describe("The name of the holder; only with `held` and `draining`."),
  acquiredAt: z.iso.datetime().optional().describe("ISO 8601."),
  expiresAt: z.iso.datetime().optional().describe("ISO 8601; a renewal moves it."),
  reason: z.string().optional().describe("With `draining`: why the lease was lost."),
  waiters: z
    .array(z.strictObject({ holder: z.string(), waitingMs: z.int() }))
    .describe("The first 100 waiters."),
  waiterCount: z.int().describe("The number of all waiters."),
});

export const leaseHeader = "berth-lease";
export const waitHeader = "berth-wait-ms";

export type AcquireCall = z.infer<typeof acquireCallSchema>;
export type LeaseGranted = z.infer<typeof leaseSchema>;
export type LeaseQueued = z.infer<typeof leaseQueuedSchema>;
export type LeaseReleased = z.infer<typeof leaseReleasedSchema>;
export type LeaseView = z.infer<typeof leaseStateSchema>;
