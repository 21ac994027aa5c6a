/**
 * Owns the calls and answers of the Directory: scopes, lists, counts, and what a sandbox reports of itself.
 * Does not own what is told of one sandbox (sandbox.ts).
 */
import { z } from "zod";
import { eventDataSchema } from "./event.ts";
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";
import { sandboxSchema, stateNames } from "./sandbox.ts";

export const listedSandboxSchema = sandboxSchema
  .omit({ lease: true })
  .extend({
    stateAsOf: z.iso.datetime().meta({ description: "When the sandbox last said so." }),
    current: z.boolean().meta({ description: "Whether its scope leads to it." }),
  })
  .meta({ id: "ListedSandbox" });

export const sandboxesSchema = z
  .strictObject({ sandboxes: z.array(listedSandboxSchema), nextCursor: z.string().nullable() })
  .meta({ id: "Sandboxes" });

const metadataFilter = z
  .string()
  .max(limits.metadataKeyBytesMax + limits.metadataValueBytesMax + 1)
  .regex(/^[A-Za-z0-9._:/-]+=[\s\S]+$/, "must be key=value");

export const sandboxesQuerySchema = z.strictObject({
  state: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(z.enum(stateNames)).min(1).max(stateNames.length))
    .optional(),
  "scope.repo": z.string().max(limits.scopeCharsMax).optional(),
  "scope.branch": z.string().max(limits.scopeCharsMax).optional(),
  "scope.config": z.string().max(limits.scopeCharsMax).optional(),
  /** Repeated: all of them. */
  metadata: z.array(metadataFilter).max(limits.metadataFiltersMax).default([]),
  mine: z.enum(["0", "1"]).default("0"),
  limit: wholeNumber(1, limits.sandboxesPageMax).prefault(100),
  cursor: z
    .string()
    .regex(/^\d{1,15}\.[a-z][a-z0-9]{23}$/, "must be a cursor as nextCursor gave it")
    .optional(),
});

export const countsSchema = z
  .strictObject({
    states: z.partialRecord(z.enum(stateNames), z.int()),
    total: z.int().meta({ description: "Without destroyed ones." }),
  })
  .meta({ id: "Counts" });

export const tenantEventsSchema = z
  .strictObject({
    events: z.array(
      z.strictObject({
        seq: z.int(),
        at: z.iso.datetime(),
        sandbox: z.string(),
        event: eventDataSchema,
      }),
    ),
    nextCursor: z.string().nullable(),
    gap: z.boolean(),
  })
  .meta({ id: "TenantEvents" });

/** What a sandbox tells its Directory: all of it, each time, with a number that only grows. */
export type Report = {
  tenant: string;
  revision: number;
  asOf: number;
  view: z.infer<typeof sandboxSchema>;
  /** State and metadata events that were not told before, oldest first. */
  events: { seq: number; at: string; event: z.infer<typeof eventDataSchema> }[];
};

export type ListedSandbox = z.infer<typeof listedSandboxSchema>;
export type SandboxesPage = z.infer<typeof sandboxesSchema>;
export type SandboxesQuery = z.infer<typeof sandboxesQuerySchema>;
export type SandboxesInput = z.input<typeof sandboxesQuerySchema>;
export type Counts = z.infer<typeof countsSchema>;
export type TenantEvents = z.infer<typeof tenantEventsSchema>;
