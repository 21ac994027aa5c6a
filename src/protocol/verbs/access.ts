/**
 * Rows of the verbs on events, tokens and connect tickets of a sandbox.
 */
import { type Schemas, sandboxPath, type VerbRow } from "./row.ts";

export const accessRows = ({
  connectTicketSchema,
  eventsQuerySchema,
  eventsSchema,
  tokenCallSchema,
  tokenSchema,
}: Schemas) =>
  ({
    listEvents: {
      method: "GET",
      path: `${sandboxPath}/events`,
      call: "events",
      summary: "List the events of a sandbox in order, or follow them",
      example: { query: { after: 120, limit: 50 } },
      right: "read",
      query: eventsQuerySchema,
      responses: {
        200: {
          schema: eventsSchema,
          meaning:
            "JSON. With `follow=1` server-sent events until the sandbox is destroyed; the last one is `over`.",
        },
      },
      errors: ["too_many"],
    },
    createToken: {
      method: "POST",
      path: `${sandboxPath}/tokens`,
      summary: "Create a token for this sandbox with some of the rights",
      example: { body: { rights: ["read", "exec"], ttlMs: 3_600_000 } },
      right: "key",
      body: tokenCallSchema,
      responses: { 201: { schema: tokenSchema, meaning: "The token is shown only once." } },
    },
    revokeTokens: {
      method: "DELETE",
      path: `${sandboxPath}/tokens`,
      summary: "Revoke all tokens of this sandbox and close what they opened",
      right: "key",
      needs: "admin",
      repeatable: true,
      responses: { 204: { schema: "none", meaning: "No token of this sandbox is valid now." } },
    },
    createTicket: {
      method: "POST",
      path: `${sandboxPath}/tickets`,
      summary: "Create a ticket that opens one WebSocket",
      description:
        "A ticket is valid once, for a minute, with the rights of its creator. Browsers need it because they cannot set headers of a WebSocket.",
      right: ["lease", "terminal"],
      responses: {
        201: { schema: connectTicketSchema, meaning: "The ticket is shown only once." },
      },
      errors: ["too_many"],
    },
  }) as const satisfies Record<string, VerbRow>;
