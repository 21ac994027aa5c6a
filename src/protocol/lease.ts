/**
 * Schemas of the lease of a sandbox. Its rules are in core/lease.
 */
import { z } from "zod";
import { flagSchema } from "./fields/flag.ts";
import { limits } from "./limits.ts";

const holderSchema = z
  .string()
  .min(1)
  .max(limits.holderCharsMax)
  .regex(/^[^\p{Cc}]*$/u, "must not contain control characters")
  .refine((text) => text.isWellFormed(), "must be well-formed Unicode");

export const ticketSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{16,64}$/, "must be 16 to 64 letters, digits, _ or -");

export const acquireCallSchema = z
  .strictObject({
    /** The holder's name, which waiters see; `anonymous` by default. */
    holder: holderSchema
      .default("anonymous")
      .meta({ description: "Name of the holder; waiters see it." }),
    /** Milliseconds that the lease lasts without a renewal; 30,000 by default, 1,000 to 300,000. */
    ttlMs: z.int().min(limits.leaseTtlMinMs).max(limits.leaseTtlMaxMs).default(limits.leaseTtlMs),
    /** Milliseconds that this call may wait; 0 by default, at most 25,000. */
    waitMs: z
      .int()
      .min(0)
      .max(limits.waitMaxMs)
      .default(0)
      .meta({ description: "How long this call may wait." }),
    /** Milliseconds that the caller stays in the queue, over several calls; `waitMs` by default, at most 1 hour. */
    queueMs: z
      .int()
      .min(0)
      .max(limits.leaseQueueMaxMs)
      .optional()
      .meta({ description: "How long the caller stays in the queue; default: `waitMs`." }),
    /** A secret that the caller chooses: a repeated call keeps its place in the queue, or returns the same lease. */
    ticket: ticketSchema.optional().meta({
      description:
        "A secret of the caller. A repeated call with it keeps its place in the queue, or gets the same lease.",
    }),
  })
  .meta({ id: "LeaseAcquire" });

export const renewCallSchema = z
  .strictObject({
    ttlMs: z.int().min(limits.leaseTtlMinMs).max(limits.leaseTtlMaxMs).optional(),
  })
  .meta({ id: "LeaseRenew" });

export const releaseQuerySchema = z.strictObject({
  force: flagSchema
    .default(false)
    .meta({ description: "Releases even while commands of the lease run, and ends them." }),
  break: flagSchema.default(false).meta({ description: "Revokes the lease of its holder." }),
  reason: z
    .string()
    .max(limits.reasonCharsMax)
    .optional()
    .meta({ description: "With `break`: the reason, shown to the holder and in events." }),
});

export const connectLeaseQuerySchema = z.strictObject({
  holder: holderSchema.optional(),
  ct: z.string().optional().meta({ description: "A connect ticket, instead of a key." }),
});

export const leaseSchema = z
  .strictObject({
    /** The value of the header `Berth-Lease` of gated calls. */
    token: z.string().meta({ description: "Send it in the header `Berth-Lease` of gated calls." }),
    /** Grows with each lease of the sandbox. */
    fence: z.int().meta({ description: "Grows with each lease of the sandbox." }),
    holder: z.string(),
    acquiredAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: "Lease" });

export const leaseQueuedSchema = z
  .strictObject({
    ticket: z.string(),
    /** 0 is next. */
    position: z.int().meta({ description: "0 is next." }),
    /** Poll again within this many milliseconds, or the place in the queue is lost. */
    pollWithinMs: z.int(),
  })
  .meta({ id: "LeaseQueued" });

export const leaseReleasedSchema = z
  .strictObject({ state: z.enum(["released", "draining"]) })
  .meta({ id: "LeaseReleased" });

export const leaseStateSchema = z
  .strictObject({
    state: z.enum(["free", "offered", "held", "draining"]),
    fence: z.int(),
    holder: z.string().optional(),
    acquiredAt: z.iso.datetime().optional(),
    expiresAt: z.iso.datetime().optional(),
    /** With `draining`: why the lease was lost. */
    reason: z.string().optional().meta({ description: "With `draining`: why the lease was lost." }),
    /** The first 100 waiters. */
    waiters: z.array(z.strictObject({ holder: z.string(), waitingMs: z.int() })),
    /** The number of all waiters. */
    waiterCount: z.int(),
  })
  .meta({ id: "LeaseState" });

export const leaseHeader = "berth-lease";
export const waitHeader = "berth-wait-ms";

export type AcquireInput = z.input<typeof acquireCallSchema>;
export type AcquireCall = z.infer<typeof acquireCallSchema>;
export type LeaseGranted = z.infer<typeof leaseSchema>;
export type LeaseQueued = z.infer<typeof leaseQueuedSchema>;
export type LeaseReleased = z.infer<typeof leaseReleasedSchema>;
export type LeaseView = z.infer<typeof leaseStateSchema>;
