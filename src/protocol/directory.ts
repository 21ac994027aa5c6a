/**
 * Schemas of lists, counts and events over all sandboxes of a tenant, and the report that a sandbox sends to its
 * Directory.
 */
import { z } from "zod";
import { eventDataSchema } from "./event.ts";
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";
import { sandboxSchema, stateNames } from "./sandbox.ts";

export const listedSandboxSchema = sandboxSchema
  .omit({ lease: true })
  .extend({
    /** When the sandbox last reported this state. */
    stateAsOf: z.iso.datetime().meta({ description: "When the sandbox last reported this state." }),
    /** Whether it is the current sandbox of its scope. */
    current: z.boolean().meta({ description: "Whether it is the current sandbox of its scope." }),
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
  /** State names, separated by commas. */
  state: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(z.enum(stateNames)).min(1).max(stateNames.length))
    .optional(),
  "scope.repo": z.string().max(limits.scopeCharsMax).optional(),
  "scope.branch": z.string().max(limits.scopeCharsMax).optional(),
  "scope.config": z.string().max(limits.scopeCharsMax).optional(),
  /** May be repeated: a sandbox must match all filters. */
  metadata: z.array(metadataFilter).max(limits.metadataFiltersMax).default([]),
  /** `1`: only sandboxes that this key created. */
  mine: z.enum(["0", "1"]).default("0"),
  /** Sandboxes per page; 100 by default, at most 1,000. */
  limit: wholeNumber(1, limits.sandboxesPageMax).prefault(100),
  cursor: z
    .string()
    .regex(/^\d{1,15}\.[a-z][a-z0-9]{23}$/, "must be a `nextCursor` of an earlier page")
    .optional(),
});

export const countsSchema = z
  .strictObject({
    states: z.partialRecord(z.enum(stateNames), z.int()),
    /** All sandboxes except destroyed ones. */
    total: z.int().meta({ description: "All sandboxes except destroyed ones." }),
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
    /** Events between `after` and the first of these were removed. */
    gap: z.boolean(),
  })
  .meta({ id: "TenantEvents" });

/** The complete public view of a sandbox; `revision` orders the reports. */
export type Report = {
  tenant: string;
  revision: number;
  asOf: number;
  view: z.infer<typeof sandboxSchema>;
  /** State and metadata events since the last report, oldest first. */
  events: { seq: number; at: string; event: z.infer<typeof eventDataSchema> }[];
};

export type ListedSandbox = z.infer<typeof listedSandboxSchema>;
export type SandboxesPage = z.infer<typeof sandboxesSchema>;
export type SandboxesQuery = z.infer<typeof sandboxesQuerySchema>;
export type SandboxesInput = z.input<typeof sandboxesQuerySchema>;
export type Counts = z.infer<typeof countsSchema>;
export type TenantEvents = z.infer<typeof tenantEventsSchema>;
