/** Rows of the verbs on events, tokens, connect tickets and ports of a sandbox. */
import { response, type Schemas, sandboxPath, type VerbRow } from "./row.ts";

export const accessRows = (schemas: Schemas) =>
  ({
    listEvents: {
      method: "GET",
      path: `${sandboxPath}/events`,
      call: "events",
      summary: "List the events of a sandbox in order, or follow them",
      example: { query: { after: 120, limit: 50 } },
      right: "read",
      query: schemas.eventsQuerySchema,
      responses: {
        200: response(
          schemas.eventsSchema,
          "JSON. With `follow=1` server-sent events until the sandbox is destroyed; the last one is `over`.",
        ),
      },
      errors: ["too_many"],
    },
    createToken: {
      method: "POST",
      path: `${sandboxPath}/tokens`,
      summary: "Create a token for this sandbox with some of the rights",
      example: { body: { rights: ["read", "exec"], ttlMs: 3_600_000 } },
      right: "key",
      body: schemas.tokenCallSchema,
      responses: { 201: response(schemas.tokenSchema, "The token is shown only once.") },
    },
    revokeTokens: {
      method: "DELETE",
      path: `${sandboxPath}/tokens`,
      summary: "Revoke all tokens of this sandbox and close what they opened",
      right: "key",
      needs: "admin",
      repeatable: true,
      responses: { 204: response("none", "No token of this sandbox is valid now.") },
    },
    createTicket: {
      method: "POST",
      path: `${sandboxPath}/tickets`,
      summary: "Create a ticket that opens one WebSocket",
      description:
        "A ticket is valid once, for a minute, with the rights of its creator. Browsers need it because they cannot set headers of a WebSocket.",
      right: ["lease", "terminal"],
      responses: { 201: response(schemas.connectTicketSchema, "The ticket is shown only once.") },
      errors: ["too_many"],
    },
  }) as const satisfies Record<string, VerbRow>;

const all = `${sandboxPath}/ports` as const;

export const portRows = (schemas: Schemas) =>
  ({
    openPort: {
      method: "POST",
      path: all,
      summary: "Open a port: create an address that leads to a server in the sandbox",
      description: "Opening an open port again replaces its address.",
      example: { body: { port: 8000 } },
      right: "lifecycle",
      body: schemas.portCallSchema,
      responses: { 201: response(schemas.portSchema, "The address is shown only once.") },
      errors: ["too_many"],
    },
    listPorts: {
      method: "GET",
      path: all,
      call: "ports",
      summary: "List the open ports, without their addresses",
      right: "read",
      responses: { 200: response(schemas.portsSchema, "All open ports.") },
    },
    closePort: {
      method: "DELETE",
      path: `${all}/:port`,
      summary: "Close a port and end its address",
      right: "lifecycle",
      responses: { 204: response("none", "Closed.") },
      errors: ["sandbox_destroyed"],
    },
  }) as const satisfies Record<string, VerbRow>;
