/**
 * Bodies of calls between a Sandbox object and its agent, and the boot document. Every request has `Authorization:
 * Bearer <secret>` (otherwise 401), gated ones also a fence. Every response, errors included, has the agent's
 * incarnation and protocol version.
 */
import { z } from "zod";
import { execCallSchema } from "../exec.ts";
import { envSchema } from "../fields/env.ts";
import { isolationSchema } from "../health.ts";
import { limits } from "../limits.ts";
import { handleSchema, processCallSchema } from "../process.ts";
import { serviceCallsSchema } from "../service.ts";
import { sessionCallSchema, sessionExecCallSchema } from "../session.ts";
import { terminalCallSchema } from "../terminal.ts";

export * from "./agent-wire.ts";

/** The boot document of the agent: on fd 3 from the engine, in BERTH_BOOT on the platform. */
export const agentBootSchema = z.strictObject({
  startId: z.string().regex(/^[a-z0-9]{16}$/),
  secret: z.string().min(32),
  /** The environment of every command, as given to `create`. */
  env: envSchema,
  /** On the platform: the address of the host `callbackHost`, where that is intercepted. */
  callbackUrl: z.string().optional(),
});

const execFields = z.strictObject({
  execId: z.string(),
  requestId: z.string(),
  /** With an idempotency key: continues without the caller, its result is stored, and an id never runs twice. */
  keep: z.boolean().optional(),
});

/** Both sides are strict: an intersection refuses only fields that neither side has. */
export const agentExecCallSchema = z.intersection(execCallSchema, execFields);

/** The object generates the id. A repeated call with it returns the same process and starts nothing. */
export const agentProcessCallSchema = z.intersection(
  processCallSchema,
  z.strictObject({ id: handleSchema }),
);

/** Always has an id: that of the caller, or one that the object generated. */
export const agentSessionCallSchema = sessionCallSchema.required({ id: true });

export const agentSessionExecCallSchema = z.intersection(sessionExecCallSchema, execFields);

export const agentTerminalCallSchema = z.intersection(
  terminalCallSchema,
  z.strictObject({ id: handleSchema }),
);

/** Something that ended. Becomes one event, in the order of `n`. */
export const agentEndingSchema = z.strictObject({
  n: z.int().min(1),
  kind: z.enum(["process", "session", "terminal", "service"]),
  /** Services also report each start, in the same order. */
  what: z.enum(["started", "ended"]).optional(),
  id: handleSchema,
  exitCode: z.int().nullable().optional(),
  signal: z.string().nullable().optional(),
  reason: z.enum(["exited", "timed_out", "ended", "lease_lost"]).optional(),
  at: z.iso.datetime(),
});

export const agentWorkSchema = z.strictObject({
  execs: z.int(),
  /** Number of running processes. */
  processes: z.int(),
  sessions: z.int(),
  terminals: z.int(),
  /** WebSockets that are attached to terminals. */
  attached: z.int(),
  /** How long no command, process or attached WebSocket has kept the sandbox busy. 0: it is busy. */
  idleMs: z.int().min(0),
  /** The ends after `?after=`; the newest 1,000 are stored. */
  endings: z.array(agentEndingSchema),
});

export const agentHealthSchema = z.strictObject({
  incarnation: z.string(),
  protocol: z.int(),
  /** The part of the isolation that the agent knows; the engine or the platform adds the rest. */
  tree: isolationSchema.shape.tree,
  running: z.int(),
  fence: z.int(),
});

export const agentFenceSchema = z.strictObject({
  fence: z.int().min(0),
  /** Ends the gated work that was started below the fence. */
  drain: z.boolean(),
  /** Responds when no gated work below the fence is left, or after this time. */
  waitMs: z.int().min(0).max(limits.leaseDrainMs),
});

export const agentFencedSchema = z.strictObject({
  /** The highest fence that the agent has seen. */
  fence: z.int(),
  /** How much gated work below the fence still runs. */
  left: z.int(),
});

/**
 * The generation of valid tokens: the highest one that the agent received counts, and is returned. `keyId`: a key that was
 * removed.
 */
export const agentRevokedSchema = z.strictObject({
  generation: z.int().min(0),
  keyId: z.string().optional(),
});
export const agentFreezeSchema = z.strictObject({
  /** The agent thaws by itself after this time; 0: now. */
  forMs: z.int().min(0).max(limits.freezeMs),
});

export const agentFrozenSchema = z.strictObject({
  /** How many processes are stopped. */
  stopped: z.int(),
});

export const agentMetadataSchema = z.strictObject({
  version: z.int().min(0),
  metadata: z.record(z.string(), z.string()),
});

/** Ignores versions older than its own. */
export const agentSettingsSchema = z.strictObject({
  version: z.int().min(0),
  env: envSchema,
  /** Without it the services stay as they are. */
  services: serviceCallsSchema.optional(),
});

export const agentMetadataStoredSchema = z.strictObject({ version: z.int() });

export type AgentFence = z.infer<typeof agentFenceSchema>;
export type AgentFenced = z.infer<typeof agentFencedSchema>;
export type AgentRevoked = z.infer<typeof agentRevokedSchema>;
export type AgentMetadata = z.infer<typeof agentMetadataSchema>;
export type AgentSettings = z.infer<typeof agentSettingsSchema>;
export type AgentFreeze = z.infer<typeof agentFreezeSchema>;
export type AgentFrozen = z.infer<typeof agentFrozenSchema>;
export type AgentBoot = z.infer<typeof agentBootSchema>;
export type AgentExecCall = z.infer<typeof agentExecCallSchema>;
export type AgentProcessCall = z.infer<typeof agentProcessCallSchema>;
export type AgentSessionCall = z.infer<typeof agentSessionCallSchema>;
export type AgentSessionExecCall = z.infer<typeof agentSessionExecCallSchema>;
export type AgentTerminalCall = z.infer<typeof agentTerminalCallSchema>;
export type AgentEnding = z.infer<typeof agentEndingSchema>;
export type AgentWork = z.infer<typeof agentWorkSchema>;
export type AgentHealth = z.infer<typeof agentHealthSchema>;
