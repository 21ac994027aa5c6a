/**
 * Owns the table of REST routes: method, path, what goes in, what comes out, which errors are particular to it.
 * The door registers from it, /openapi.json is made of it, and 405 answers know their `Allow` from it.
 * Does not own handlers.
 */
import type { z } from "zod";
import type { ErrorCode } from "./errors.ts";
import { execCallSchema, execResultSchema } from "./exec.ts";
import { healthSchema } from "./health.ts";
import { createCallSchema, sandboxSchema } from "./sandbox.ts";

export type Route = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `:name` marks a parameter. */
  path: string;
  summary: string;
  /** Anyone may call it without a key. */
  open?: true;
  body?: z.ZodType;
  answers: Record<number, { schema: z.ZodType; meaning: string }>;
  errors: ErrorCode[];
};

const refusedAtTheDoor: ErrorCode[] = ["unauthenticated", "forbidden"];
const badBody: ErrorCode[] = [
  "bad_request",
  "bad_json",
  "too_large",
  "unsupported_type",
  "body_timeout",
];
const ofOneSandbox: ErrorCode[] = ["not_found", "sandbox_destroyed", "unavailable"];

export const routes = {
  health: {
    method: "GET",
    path: "/health",
    summary: "Whether Berth serves, and what separates its sandboxes",
    open: true,
    answers: { 200: { schema: healthSchema, meaning: "It serves." } },
    errors: [],
  },
  createSandbox: {
    method: "POST",
    path: "/v1/sandboxes",
    summary: "Make a sandbox",
    body: createCallSchema,
    answers: {
      201: { schema: sandboxSchema, meaning: "Made, and durable; it may still be starting." },
    },
    errors: [...refusedAtTheDoor, ...badBody, "unavailable"],
  },
  getSandbox: {
    method: "GET",
    path: "/v1/sandboxes/:id",
    summary: "The state of a sandbox; never wakes its container",
    answers: {
      200: { schema: sandboxSchema, meaning: "As it is now; a destroyed one for 7 days." },
    },
    errors: [...refusedAtTheDoor, "not_found"],
  },
  destroySandbox: {
    method: "DELETE",
    path: "/v1/sandboxes/:id",
    summary: "End a sandbox for good",
    answers: {
      200: {
        schema: sandboxSchema,
        meaning: "Destroyed, or (`destroying`) on its way and certain to be.",
      },
    },
    errors: [...refusedAtTheDoor, "not_found"],
  },
  exec: {
    method: "POST",
    path: "/v1/sandboxes/:id/exec",
    summary: "Run one command; nothing persists but the files it writes",
    body: execCallSchema,
    answers: {
      200: {
        schema: execResultSchema,
        meaning:
          "It ran; a non-zero exit is a 200. After 2 s the body begins with spaces, one a second; what fails after that is an `error` inside the 200.",
      },
    },
    errors: [
      ...refusedAtTheDoor,
      ...badBody,
      ...ofOneSandbox,
      "bad_cwd",
      "start_failed",
      "too_many",
      "operation_interrupted",
    ],
  },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof routes;
