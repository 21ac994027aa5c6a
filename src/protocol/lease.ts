/**
 * Owns the calls and answers of the lease of a sandbox.
 * Does not own its rules: core/lease has those.
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
    holder: holderSchema
      .default("anonymous")
      .meta({ description: "Who: shown to those who wait." }),
    ttlMs: z.int().min(limits.leaseTtlMinMs).max(limits.leaseTtlMaxMs).default(limits.leaseTtlMs),
    waitMs: z
      .int()
      .min(0)
      .max(limits.waitMaxMs)
      .default(0)
      .meta({ description: "How long this call may hang." }),
    queueMs: z
      .int()
      .min(0)
      .max(limits.leaseQueueMaxMs)
      .optional()
      .meta({ description: "How long the caller is willing to queue; `waitMs` unless given." }),
    ticket: ticketSchema.optional().meta({
      description: "A secret of the caller's: repeated, it gives the same place or the same lease.",
    }),
  })
  .meta({ id: "LeaseAcquire" });

export const renewCallSchema = z
  .strictObject({
    ttlMs: z.int().min(limits.leaseTtlMinMs).max(limits.leaseTtlMaxMs).optional(),
  })
  .meta({ id: "LeaseRenew" });

export const releaseQuerySchema = z.strictObject({
  force: flagSchema.default(false).meta({ description: "Also while commands of the lease run." }),
  break: flagSchema.default(false).meta({ description: "Take the lease from its holder." }),
  reason: z
    .string()
    .max(limits.reasonCharsMax)
    .optional()
    .meta({ description: "With `break`: why; the holder and the events show it." }),
});

export const connectLeaseQuerySchema = z.strictObject({
  holder: holderSchema.optional(),
  ct: z.string().optional().meta({ description: "A connect ticket." }),
});

export const leaseSchema = z
  .strictObject({
    token: z.string().meta({ description: "Goes into the header Berth-Lease of gated calls." }),
    fence: z.int().meta({ description: "Only grows, for the life of the sandbox." }),
    holder: z.string(),
    acquiredAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: "Lease" });

export const leaseQueuedSchema = z
  .strictObject({
    ticket: z.string(),
    position: z.int().meta({ description: "0 is next." }),
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
    reason: z.string().optional().meta({ description: "With `draining`: why it was lost." }),
    waiters: z.array(z.strictObject({ holder: z.string(), waitingMs: z.int() })),
    waiterCount: z.int(),
  })
  .meta({ id: "LeaseState" });

export const leaseHeader = "berth-lease";
export const waitHeader = "berth-wait-ms";

export type AcquireInput = z.input<typeof acquireCallSchema>;
export type AcquireCall = z.infer<typeof acquireCallSchema>;
export type RenewCall = z.infer<typeof renewCallSchema>;
export type LeaseGranted = z.infer<typeof leaseSchema>;
export type LeaseQueued = z.infer<typeof leaseQueuedSchema>;
export type LeaseReleased = z.infer<typeof leaseReleasedSchema>;
export type LeaseView = z.infer<typeof leaseStateSchema>;
