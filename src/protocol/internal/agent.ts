/**
 * Owns the calls between a Sandbox object and the agent in its container: headers, paths, the boot document.
 * Does not own the bodies that pass through untouched (exec.ts has those).
 *
 * Every request carries `Authorization: Bearer <secret>` (else 401), and gated ones a fence.
 * Every answer, errors included, carries the agent's incarnation and protocol version.
 */
import { z } from "zod";
import { execCallSchema } from "../exec.ts";
import { envSchema } from "../fields/env.ts";
import { isolationSchema } from "../fields/isolation.ts";
import { limits } from "../limits.ts";
import { handleSchema, processCallSchema } from "../process.ts";
import { sessionCallSchema, sessionExecCallSchema } from "../session.ts";
import { terminalCallSchema } from "../terminal.ts";

export * from "./agent-wire.ts";

/** What the agent is told before it serves: on fd 3 from the engine, in BERTH_BOOT on the platform. */
export const agentBootSchema = z.strictObject({
  startId: z.string().regex(/^[a-z0-9]{16}$/),
  secret: z.string().min(32),
  /** The environment of every command: what `create` was given. */
  env: envSchema,
});

export const agentExecCallSchema = z.intersection(
  execCallSchema,
  // Strict on both sides: an intersection refuses only the fields that neither knows.
  z.strictObject({
    execId: z.string(),
    requestId: z.string(),
    /** Its caller has a key: it goes on without the caller, its answer is kept, and an id never runs twice. */
    keep: z.boolean().optional(),
  }),
);

/** The object gives the ids of this life. Repeated with the same one: the same process, and no second run. */
export const agentProcessCallSchema = z.intersection(
  processCallSchema,
  z.strictObject({ id: handleSchema }),
);

/** Always with an id here: the caller's own or one that the object minted. */
export const agentSessionCallSchema = sessionCallSchema.required({ id: true });

export const agentSessionExecCallSchema = z.intersection(
  sessionExecCallSchema,
  z.strictObject({
    execId: z.string(),
    requestId: z.string(),
    keep: z.boolean().optional(),
  }),
);

export const agentTerminalCallSchema = z.intersection(
  terminalCallSchema,
  z.strictObject({ id: handleSchema }),
);

/** Something that ended: told once to the events, in the order of `n`. */
export const agentEndingSchema = z.strictObject({
  n: z.int().min(1),
  kind: z.enum(["process", "session", "terminal"]),
  id: handleSchema,
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  reason: z.enum(["exited", "timed_out", "ended", "lease_lost"]),
  at: z.iso.datetime(),
});

export const agentWorkSchema = z.strictObject({
  execs: z.int(),
  /** That run. */
  processes: z.int(),
  sessions: z.int(),
  terminals: z.int(),
  /** Sockets that are attached to terminals. */
  attached: z.int(),
  /** Since when nothing of it kept the sandbox busy: running commands and processes, attached sockets. 0: it is busy. */
  idleMs: z.int().min(0),
  /** After the asked one; the newest 1,000 are kept. */
  endings: z.array(agentEndingSchema),
});

export const agentHealthSchema = z.strictObject({
  incarnation: z.string(),
  protocol: z.int(),
  /** What the agent itself knows of its isolation; the engine or the platform adds the rest. */
  tree: isolationSchema.shape.tree,
  running: z.int(),
  fence: z.int(),
});

export const agentFenceSchema = z.strictObject({
  fence: z.int().min(0),
  /** End the gated work that was started below the fence. */
  drain: z.boolean(),
  /** Answer when no gated work below the fence is left, or after this long. */
  waitMs: z.int().min(0).max(limits.leaseDrainMs),
});

export const agentFencedSchema = z.strictObject({
  /** The highest that it has seen. */
  fence: z.int(),
  /** Gated work below the fence that is left. */
  left: z.int(),
});

/** The generation of tokens that are good; the highest that was told holds, and is answered. */
export const agentRevokedSchema = z.strictObject({ generation: z.int().min(0) });

export const agentMetadataSchema = z.strictObject({
  version: z.int().min(0),
  metadata: z.record(z.string(), z.string()),
});

export const agentMetadataStoredSchema = z.strictObject({ version: z.int() });

export type AgentFence = z.infer<typeof agentFenceSchema>;
export type AgentFenced = z.infer<typeof agentFencedSchema>;
export type AgentRevoked = z.infer<typeof agentRevokedSchema>;
export type AgentMetadata = z.infer<typeof agentMetadataSchema>;
export type AgentBoot = z.infer<typeof agentBootSchema>;
export type AgentExecCall = z.infer<typeof agentExecCallSchema>;
export type AgentProcessCall = z.infer<typeof agentProcessCallSchema>;
export type AgentSessionCall = z.infer<typeof agentSessionCallSchema>;
export type AgentSessionExecCall = z.infer<typeof agentSessionExecCallSchema>;
export type AgentTerminalCall = z.infer<typeof agentTerminalCallSchema>;
export type AgentEnding = z.infer<typeof agentEndingSchema>;
export type AgentWork = z.infer<typeof agentWorkSchema>;
export type AgentHealth = z.infer<typeof agentHealthSchema>;
