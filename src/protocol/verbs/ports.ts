/**
 * Rows of the verbs that open and close ports. Requests to an open port have addresses of their own.
 */
import { type Schemas, sandboxPath, type VerbRow } from "./row.ts";

const all = `${sandboxPath}/ports` as const;

export const portRows = ({ portCallSchema, portSchema, portsSchema }: Schemas) =>
  ({
    openPort: {
      method: "POST",
      path: all,
      summary: "Open a port: create an address that leads to a server in the sandbox",
      description: "Opening an open port again replaces its address.",
      example: { body: { port: 8000 } },
      right: "lifecycle",
      body: portCallSchema,
      responses: { 201: { schema: portSchema, meaning: "The address is shown only once." } },
      errors: ["too_many"],
    },
    listPorts: {
      method: "GET",
      path: all,
      call: "ports",
      summary: "List the open ports, without their addresses",
      right: "read",
      responses: { 200: { schema: portsSchema, meaning: "All open ports." } },
    },
    closePort: {
      method: "DELETE",
      path: `${all}/:port`,
      summary: "Close a port and end its address",
      right: "lifecycle",
      responses: { 204: { schema: "none", meaning: "Closed." } },
      errors: ["sandbox_destroyed"],
    },
  }) as const satisfies Record<string, VerbRow>;
