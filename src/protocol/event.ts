/** Schemas of events of one sandbox: what happened, in order, each with a number that only grows. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { stateNames } from "./fields/forms.ts";
import { pageLimit, queryNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";
import { metadataSchema } from "./metadata.ts";
import { filesFromSchema } from "./sandbox.ts";

const stateEvent = z.strictObject({
  type: z.literal("state"),
  state: z.enum(stateNames),
  reason: z.string().optional(),
  files: filesFromSchema
    .optional()
    .describe("With `running`: where the files of this incarnation came from."),
});

const leaseEvent = z.strictObject({
  type: z.literal("lease"),
  what: z.enum(["granted", "ended", "lost", "drained"]),
  fence: z.int(),
  holder: z.string(),
  reason: z.string().optional(),
  by: z
    .string()
    .optional()
    .describe("The tenant that revoked it, and the reason: `<tenant>: <reason>`."),
});

const metadataEvent = z.strictObject({
  type: z.literal("metadata"),
  version: z.int(),
  set: metadataSchema,
  removed: z.array(z.string()),
});

const settingsEvent = z.strictObject({
  type: z.literal("settings"),
  version: z.int(),
  changed: z.array(z.string()).describe("The names of the fields."),
});

/** Commands are reported in batches, at most one per second. */
const execEvent = z.strictObject({
  type: z.literal("exec"),
  count: z.int(),
  execs: z.array(z.strictObject({ execId: z.string(), durationMs: z.int() })),
});

/** Processes, sessions, terminals and services. An end is reported when the object next asks the agent; `at` says when it was. */
const workEvent = z.strictObject({
  type: z.enum(["process", "session", "terminal", "service"]),
  what: z.enum(["started", "ended"]),
  id: z.string(),
  sessionId: z.string().optional(),
  exitCode: z.int().nullable().optional(),
  signal: z.string().nullable().optional(),
  reason: z.enum(["exited", "timed_out", "ended", "lease_lost"]).optional(),
  at: z.iso.datetime().optional(),
  n: z.int().optional().describe("With `ended`: its number within its incarnation."),
  incarnation: z.string(),
});

const checkpointEvent = z.strictObject({
  type: z.literal("checkpoint"),
  what: z.enum(["made", "restored", "removed"]),
  id: z.string(),
  name: z.string().optional(),
});

const planEvent = z.strictObject({
  type: z.literal("plan"),
  what: z.enum(["joined", "left", "prepared", "committed", "aborted", "rolled_back"]),
  plan: z.string(),
  commit: z.int().optional(),
  checkpoint: z.string().optional(),
});

const portEvent = z.strictObject({
  type: z.literal("port"),
  what: z.enum(["opened", "closed"]),
  port: z.int(),
});

const tokensEvent = z.strictObject({ type: z.literal("tokens"), what: z.literal("revoked") });

export const eventDataSchema = z.discriminatedUnion("type", [
  stateEvent,
  leaseEvent,
  metadataEvent,
  settingsEvent,
  execEvent,
  workEvent,
  checkpointEvent,
  planEvent,
  portEvent,
  tokensEvent,
]);

export const eventSchema = z
  .object({ seq: z.int(), at: z.iso.datetime(), event: eventDataSchema })
  .meta({ id: "Event" });

export const eventsQuerySchema = z.strictObject({
  after: queryNumber(0, Number.MAX_SAFE_INTEGER)
    .prefault(0)
    .describe("Returns events with a higher `seq`; 0 is the beginning."),
  limit: pageLimit("Events", limits.eventsPageMax, 100),
  follow: z
    .enum(["0", "1"])
    .default("0")
    .describe("`1`: a stream of server-sent events instead of a page."),
});

export const eventsSchema = component("Events", {
  events: z.array(eventSchema),
  nextCursor: z.string().nullable(),
  gap: z.boolean().describe("Events between `after` and the first of these were removed."),
});

export type EventData = z.infer<typeof eventDataSchema>;
export type SandboxEventView = z.infer<typeof eventSchema>;
export type EventsPage = z.infer<typeof eventsSchema>;
export type EventsQuery = z.infer<typeof eventsQuerySchema>;
