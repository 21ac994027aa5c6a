/**
 * Owns the calls between a Sandbox object and the agent in its container: headers, paths, the boot document.
 * Does not own the bodies that pass through untouched (exec.ts has those).
 *
 * Every request carries `Authorization: Bearer <secret>` (else 401), and gated ones a fence.
 * Every answer, errors included, carries the agent's incarnation and protocol version.
 */
import { z } from "zod";
import { envSchema } from "./env.ts";
import { execCallSchema } from "./exec.ts";
import { isolationSchema } from "./isolation.ts";
import { limits } from "./limits.ts";

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
  z.strictObject({ execId: z.string(), requestId: z.string() }),
);

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

export const agentMetadataSchema = z.strictObject({
  version: z.int().min(0),
  metadata: z.record(z.string(), z.string()),
});

export const agentMetadataKeptSchema = z.strictObject({ version: z.int() });

export type AgentFence = z.infer<typeof agentFenceSchema>;
export type AgentFenced = z.infer<typeof agentFencedSchema>;
export type AgentMetadata = z.infer<typeof agentMetadataSchema>;
export type AgentBoot = z.infer<typeof agentBootSchema>;
export type AgentExecCall = z.infer<typeof agentExecCallSchema>;
export type AgentHealth = z.infer<typeof agentHealthSchema>;
