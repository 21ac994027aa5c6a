/**
 * Owns the routes over all sandboxes of a tenant. Making one is a route of sandboxes.
 */
import {
  countsSchema,
  sandboxesQuerySchema,
  sandboxesSchema,
  tenantEventsSchema,
} from "../directory.ts";
import { eventsQuerySchema } from "../event.ts";
import { atTheDoor, type Route } from "./verb.ts";

export const directoryRoutes = {
  listSandboxes: {
    method: "GET",
    path: "/v1/sandboxes",
    summary: "The sandboxes, newest first, by filters; asks none of them and wakes none",
    right: "key",
    needs: "read",
    query: sandboxesQuerySchema,
    answers: { 200: { schema: sandboxesSchema, meaning: "As each was last told (`stateAsOf`)." } },
    errors: [...atTheDoor, "bad_request"],
  },
  countSandboxes: {
    method: "GET",
    path: "/v1/counts",
    summary: "How many sandboxes there are in each state",
    right: "key",
    needs: "read",
    answers: { 200: { schema: countsSchema, meaning: "As they were last told." } },
    errors: atTheDoor,
  },
  listTenantEvents: {
    method: "GET",
    path: "/v1/events",
    summary: "State and metadata events of all sandboxes (?after=&limit=), or a stream (?follow=1)",
    right: "key",
    needs: "read",
    query: eventsQuerySchema,
    answers: {
      200: { schema: tenantEventsSchema, meaning: "JSON, or with `follow=1` server-sent events." },
    },
    errors: [...atTheDoor, "bad_request", "too_many"],
  },
} as const satisfies Record<string, Route>;
