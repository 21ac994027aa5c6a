/**
 * Owns the routes of terminals. Their bytes travel over the WebSocket of `connect`, which creates nothing.
 */
import type { ErrorCode } from "../errors.ts";
import {
  connectQuerySchema,
  screenSchema,
  terminalCallSchema,
  terminalEndedSchema,
  terminalResizeSchema,
  terminalSchema,
  terminalsSchema,
} from "../terminal.ts";
import { startErrors } from "./process.ts";
import { badBody, ofOneAlive, one, type Route } from "./verb.ts";

const all = `${one}/terminals`;
const single = `${all}/:terminal`;

const ofOneTerminal: ErrorCode[] = [
  ...ofOneAlive,
  "bad_request",
  "stale_handle",
  "operation_interrupted",
];

export const terminalRoutes = {
  createTerminal: {
    method: "POST",
    path: all,
    summary: "Get or make a terminal",
    right: "terminal",
    gated: true,
    body: terminalCallSchema,
    answers: {
      200: { schema: terminalSchema, meaning: "It was there." },
      201: { schema: terminalSchema, meaning: "Made." },
    },
    errors: [...startErrors, "stale_handle"],
  },
  listTerminals: {
    method: "GET",
    path: all,
    summary: "The terminals; never wakes the container",
    right: "read",
    answers: { 200: { schema: terminalsSchema, meaning: "Empty where no container runs." } },
    errors: ofOneAlive,
  },
  getTerminal: {
    method: "GET",
    path: single,
    summary: "One terminal",
    right: "read",
    answers: { 200: { schema: terminalSchema, meaning: "As it is now." } },
    errors: ofOneTerminal,
  },
  resizeTerminal: {
    method: "PATCH",
    path: single,
    summary: "Change its size",
    right: "terminal",
    body: terminalResizeSchema,
    answers: { 200: { schema: terminalSchema, meaning: "As it is afterwards." } },
    errors: [...ofOneTerminal, ...badBody],
  },
  endTerminal: {
    method: "DELETE",
    path: single,
    summary: "End it and all that runs in it",
    right: "terminal",
    answers: { 200: { schema: terminalEndedSchema, meaning: "Ended." } },
    errors: ofOneTerminal,
  },
  terminalScreen: {
    method: "GET",
    path: `${single}/screen`,
    summary: "The visible text",
    right: "read",
    answers: { 200: { schema: screenSchema, meaning: "As it is now." } },
    errors: ofOneTerminal,
  },
  connectTerminal: {
    method: "GET",
    path: `${single}/connect`,
    summary:
      "A WebSocket that carries its bytes; with the subprotocol berth.terminal.v1 also frames",
    right: "terminal",
    query: connectQuerySchema,
    answers: {},
    errors: [...ofOneTerminal, "upgrade_required", "too_many"],
  },
} as const satisfies Record<string, Route>;
