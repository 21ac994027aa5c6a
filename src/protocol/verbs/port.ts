/**
 * Owns the routes by which ports are opened and closed. Traffic to them has addresses of its own.
 */
import { z } from "zod";
import { portCallSchema, portSchema, portsSchema } from "../port.ts";
import { badBody, ofOneAlive, ofOneSandbox, one, type Route } from "./verb.ts";

const all = `${one}/ports`;

export const portRoutes = {
  openPort: {
    method: "POST",
    path: all,
    summary: "An address by which others reach a server in the sandbox",
    right: "lifecycle",
    body: portCallSchema,
    answers: { 201: { schema: portSchema, meaning: "Open. Asked again, it gets a new address." } },
    errors: [...ofOneAlive, ...badBody, "too_many"],
  },
  listPorts: {
    method: "GET",
    path: all,
    summary: "The open ports, without their addresses",
    right: "read",
    answers: { 200: { schema: portsSchema, meaning: "All of them." } },
    errors: ofOneSandbox,
  },
  closePort: {
    method: "DELETE",
    path: `${all}/:port`,
    summary: "End the address of a port",
    right: "lifecycle",
    answers: { 204: { schema: z.null(), meaning: "Closed." } },
    errors: [...ofOneAlive, "bad_request"],
  },
} as const satisfies Record<string, Route>;
