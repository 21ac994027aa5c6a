/**
 * Owns the table of REST routes: method, path, what goes in, what comes out, which errors are particular to it.
 * The door registers from it, /openapi.json is made of it, and 405 answers know their `Allow` from it.
 * Does not own handlers.
 */
import { z } from "zod";
import { eventsQuerySchema, eventsSchema } from "./event.ts";
import { execCallSchema, execResultSchema } from "./exec.ts";
import { healthSchema } from "./health.ts";
import {
  acquireCallSchema,
  leaseQueuedSchema,
  leaseReleasedSchema,
  leaseSchema,
  leaseStateSchema,
  renewCallSchema,
} from "./lease.ts";
import { metadataAnswerSchema, metadataPatchSchema } from "./metadata.ts";
import { connectTicketSchema, tokenCallSchema, tokenSchema } from "./rights.ts";
import { createCallSchema, sandboxSchema } from "./sandbox.ts";
import { checkpointRoutes } from "./verbs/checkpoint.ts";
import { directoryRoutes } from "./verbs/directory.ts";
import { fileRoutes } from "./verbs/file.ts";
import { planRoutes } from "./verbs/plan.ts";
import { portRoutes } from "./verbs/port.ts";
import { processRoutes } from "./verbs/process.ts";
import { sessionRoutes } from "./verbs/session.ts";
import { terminalRoutes } from "./verbs/terminal.ts";
import { atTheGate, badBody, ofOneAlive, ofOneSandbox, one, type Route } from "./verbs/verb.ts";

export type { Route } from "./verbs/verb.ts";

const sandbox = (meaning: string) => ({ 200: { schema: sandboxSchema, meaning } });

export const routes = {
  health: {
    method: "GET",
    path: "/health",
    summary: "Whether Berth serves, and what separates its sandboxes",
    answers: { 200: { schema: healthSchema, meaning: "It serves." } },
    errors: [],
  },
  createSandbox: {
    method: "POST",
    path: "/v1/sandboxes",
    summary:
      "Make a sandbox, or with a scope find its current one (?force=true: replace also one whose lease is held)",
    right: "key",
    needs: ["exec", "lifecycle"],
    keyed: true,
    body: createCallSchema,
    answers: {
      201: { schema: sandboxSchema, meaning: "Made, and durable; it may still be starting." },
      200: { schema: sandboxSchema, meaning: "Found: by its scope, or by the key of this call." },
    },
    errors: [
      ...ofOneAlive,
      ...badBody,
      ...atTheGate,
      "unsupported",
      "scope_taken",
      "idempotency_mismatch",
      "checkpoint_expired",
    ],
  },
  getSandbox: {
    method: "GET",
    path: one,
    summary: "The state of a sandbox; never wakes its container",
    right: "read",
    answers: sandbox("As it is now; a destroyed one for 7 days."),
    errors: ofOneSandbox,
  },
  destroySandbox: {
    method: "DELETE",
    path: one,
    summary: "End a sandbox for good",
    right: "lifecycle",
    gated: true,
    answers: sandbox("Destroyed, or (`destroying`) on its way and certain to be."),
    errors: [...ofOneSandbox, ...atTheGate, "bad_request"],
  },
  startSandbox: {
    method: "POST",
    path: `${one}/start`,
    summary: "Give a paused or failed sandbox a container",
    right: "lifecycle",
    answers: sandbox("Running, or still on its way."),
    errors: ofOneAlive,
  },
  pauseSandbox: {
    method: "POST",
    path: `${one}/pause`,
    summary:
      "Stop the container; files stay, processes end (?discardFiles=true: where they cannot be kept)",
    right: "lifecycle",
    gated: true,
    answers: sandbox("Paused, or still on its way."),
    errors: [...ofOneAlive, ...atTheGate, "not_running", "bad_request", "unsupported"],
  },
  touchSandbox: {
    method: "POST",
    path: `${one}/touch`,
    summary: "Say that it is still needed: the idle time begins anew",
    right: "exec",
    answers: sandbox("Noted."),
    errors: ofOneAlive,
  },
  exec: {
    method: "POST",
    path: `${one}/exec`,
    summary: "Run one command; nothing persists but the files it writes",
    right: "exec",
    gated: true,
    keyed: true,
    body: execCallSchema,
    answers: {
      200: {
        schema: execResultSchema,
        meaning:
          "It ran; a non-zero exit is a 200. After 2 s the body begins with spaces, one a second; what fails after that is an `error` inside the 200.",
      },
    },
    errors: [
      ...ofOneAlive,
      ...badBody,
      ...atTheGate,
      "bad_cwd",
      "not_running",
      "start_failed",
      "too_many",
      "operation_interrupted",
    ],
  },
  acquireLease: {
    method: "POST",
    path: `${one}/lease`,
    summary:
      "Get the right to change the sandbox alone for a while, or a place in the queue for it",
    right: "lease",
    body: acquireCallSchema,
    answers: {
      201: { schema: leaseSchema, meaning: "Granted." },
      202: { schema: leaseQueuedSchema, meaning: "Queued: repeat the call with the ticket." },
    },
    errors: [...ofOneAlive, ...badBody, ...atTheGate, "queue_full"],
  },
  renewLease: {
    method: "PUT",
    path: `${one}/lease`,
    summary: "Go on holding it (header Berth-Lease)",
    right: "lease",
    body: renewCallSchema,
    answers: { 200: { schema: leaseSchema, meaning: "Renewed." } },
    errors: [...ofOneAlive, ...badBody, "lease_lost"],
  },
  releaseLease: {
    method: "DELETE",
    path: `${one}/lease`,
    summary:
      "Let it go (header Berth-Lease), or take it from its holder (?break=true&reason=, right admin)",
    right: "lease",
    answers: {
      200: { schema: leaseReleasedSchema, meaning: "Free, or draining: then free soon." },
    },
    errors: [...ofOneAlive, "bad_request", "lease_busy", "lease_lost"],
  },
  getLease: {
    method: "GET",
    path: `${one}/lease`,
    summary: "Who holds it, until when, and who waits",
    right: "read",
    answers: { 200: { schema: leaseStateSchema, meaning: "As it is now." } },
    errors: ofOneSandbox,
  },
  connectLease: {
    method: "GET",
    path: `${one}/lease/connect`,
    summary: "A lease that a WebSocket holds: frames queued, granted, lost; closing it lets go",
    right: "lease",
    answers: {},
    errors: [...ofOneAlive, "bad_request", "upgrade_required"],
  },
  getMetadata: {
    method: "GET",
    path: `${one}/metadata`,
    summary: "The metadata and its version",
    right: "read",
    answers: { 200: { schema: metadataAnswerSchema, meaning: "With the version as ETag." } },
    errors: ofOneSandbox,
  },
  patchMetadata: {
    method: "PATCH",
    path: `${one}/metadata`,
    summary: "Set and remove keys, in one step; null or the empty string removes",
    right: "lifecycle",
    body: metadataPatchSchema,
    answers: { 200: { schema: metadataAnswerSchema, meaning: "As it is afterwards." } },
    errors: [...ofOneAlive, ...badBody, "version_mismatch"],
  },
  replaceMetadata: {
    method: "PUT",
    path: `${one}/metadata`,
    summary: "Replace all of it (needs If-Match)",
    right: "lifecycle",
    body: metadataPatchSchema,
    answers: { 200: { schema: metadataAnswerSchema, meaning: "As it is afterwards." } },
    errors: [...ofOneAlive, ...badBody, "version_mismatch", "precondition_required"],
  },
  listEvents: {
    method: "GET",
    path: `${one}/events`,
    summary: "What happened, in order (?after=&limit=), or a stream of it (?follow=1)",
    right: "read",
    query: eventsQuerySchema,
    answers: {
      200: {
        schema: eventsSchema,
        meaning: "JSON, or with `follow=1` server-sent events; `over` ends them.",
      },
    },
    errors: [...ofOneSandbox, "bad_request", "too_many"],
  },
  createToken: {
    method: "POST",
    path: `${one}/tokens`,
    summary: "A token for this sandbox only, with some of the rights",
    right: "key",
    body: tokenCallSchema,
    answers: { 201: { schema: tokenSchema, meaning: "Shown this once." } },
    errors: [...ofOneAlive, ...badBody],
  },
  revokeTokens: {
    method: "DELETE",
    path: `${one}/tokens`,
    summary: "End all tokens of this sandbox, and what they opened",
    right: "key",
    needs: "admin",
    answers: { 204: { schema: z.null(), meaning: "None is good any more." } },
    errors: ofOneSandbox,
  },
  createTicket: {
    method: "POST",
    path: `${one}/tickets`,
    summary:
      "A ticket for one WebSocket, good once and for a minute, and for what its maker may do",
    right: ["lease", "terminal"],
    answers: { 201: { schema: connectTicketSchema, meaning: "Shown this once." } },
    errors: [...ofOneAlive, "too_many"],
  },
  ...directoryRoutes,
  ...checkpointRoutes,
  ...portRoutes,
  ...processRoutes,
  ...sessionRoutes,
  ...terminalRoutes,
  ...fileRoutes,
  ...planRoutes,
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof routes;
