/** Schemas of lists, counts and events of a tenant, and the report of a sandbox to its Directory. */
import { z } from "zod";
import { eventDataSchema } from "./event.ts";
import { component } from "./fields/component.ts";
import { stateNames } from "./fields/forms.ts";
import { tenantIdSchema } from "./fields/id.ts";
import { nextCursor, pageLimit } from "./fields/scalar.ts";
import { limits } from "./limits.ts";
import { sandboxSchema } from "./sandbox.ts";

export const listedSandboxSchema = sandboxSchema
  .omit({ lease: true, tenantId: true })
  .extend({
    stateAsOf: z.iso.datetime().describe("When the sandbox last reported this state."),
    current: z.boolean().describe("Whether it is the current sandbox of its scope."),
  })
  .meta({ id: "ListedSandbox" });

export const sandboxesSchema = component("Sandboxes", {
  sandboxes: z.array(listedSandboxSchema),
  nextCursor: z.string().nullable(),
  tenantId: tenantIdSchema.optional(),
});

const metadataFilter = z
  .string()
  .max(limits.metadataKeyBytesMax + limits.metadataValueBytesMax + 1)
  .regex(/^[A-Za-z0-9._:/-]+=[\s\S]+$/, "must be key=value");

const scopeFilter = z
  .string()
  .max(limits.scopeCharsMax)
  .optional()
  .describe("Only sandboxes whose scope has this value.");

export const sandboxesQuerySchema = z.strictObject({
  state: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(z.enum(stateNames)).min(1).max(stateNames.length))
    .optional()
    .describe("State names, separated by commas."),
  "scope.repo": scopeFilter,
  "scope.branch": scopeFilter,
  "scope.config": scopeFilter,
  metadata: z
    .array(metadataFilter)
    .max(limits.metadataFiltersMax)
    .default([])
    .describe("`key=value`. May be repeated: a sandbox must match all filters."),
  mine: z.enum(["0", "1"]).default("0").describe("`1`: only sandboxes that this key created."),
  limit: pageLimit("Sandboxes", limits.sandboxesPageMax, 100),
  cursor: z
    .string()
    .regex(/^\d{1,15}\.[a-z][a-z0-9]{23}$/, "must be a `nextCursor` of an earlier page")
    .optional()
    .describe(nextCursor),
});

export const countsSchema = component("Counts", {
  states: z
    .partialRecord(z.enum(stateNames), z.int())
    .describe("The number of sandboxes in each state; a state without any is left out."),
  total: z.int().describe("All sandboxes except destroyed ones."),
  quota: z
    .strictObject({
      sandboxes: z.int().optional(),
      createsPerMinute: z.int().optional(),
      callsAtOnce: z.int().optional(),
    })
    .optional()
    .describe(
      "What the operator allows this tenant: `total`, creates within a minute, and calls at once.",
    ),
});

export const tenantEventsSchema = component("TenantEvents", {
  events: z.array(
    z.strictObject({
      seq: z.int(),
      at: z.iso.datetime(),
      sandbox: z.string(),
      event: eventDataSchema,
    }),
  ),
  nextCursor: z.string().nullable(),
  gap: z.boolean().describe("Events between `after` and the first of these were removed."),
});

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
