/** Rows of the verbs over all sandboxes of a tenant. */
import { response, type Schemas, type VerbRow } from "./row.ts";

export const directoryRows = (schemas: Schemas) =>
  ({
    listSandboxes: {
      method: "GET",
      path: "/v1/sandboxes",
      call: "list",
      summary: "List sandboxes, newest first",
      description:
        "Reads the tenant's directory: no sandbox is asked and no container starts. `stateAsOf` says how old each entry is.",
      example: { query: { state: "running,paused", limit: 20 } },
      right: "key",
      needs: "read",
      query: schemas.sandboxesQuerySchema,
      responses: { 200: response(schemas.sandboxesSchema, "One page of sandboxes.") },
    },
    countSandboxes: {
      method: "GET",
      path: "/v1/counts",
      call: "counts",
      summary: "Count sandboxes by state",
      right: "key",
      needs: "read",
      responses: { 200: response(schemas.countsSchema, "The counts of the directory.") },
    },
    listTenantEvents: {
      method: "GET",
      path: "/v1/events",
      call: "events",
      summary: "List the state and metadata events of all sandboxes, or follow them",
      example: { query: { after: 120, limit: 50 } },
      right: "key",
      needs: "read",
      query: schemas.eventsQuerySchema,
      responses: {
        200: response(schemas.tenantEventsSchema, "JSON, or server-sent events with `follow=1`."),
      },
      errors: ["too_many"],
    },
  }) as const satisfies Record<string, VerbRow>;
