/**
 * Schemas of a sandbox: the call that creates it, and its public view. The stored record also has secrets.
 */
import { z } from "zod";
import { checkpointIdSchema } from "./checkpoint.ts";
import { pathSchema, sandboxEnvSchema } from "./fields/env.ts";
import { flagSchema } from "./fields/flag.ts";
import { sandboxIdSchema } from "./fields/id.ts";
import { isolationSchema } from "./fields/isolation.ts";
import { clientSchema, onExistingSchema, scopeSchema } from "./fields/scope.ts";
import { sizeNameSchema } from "./fields/size.ts";
import { limits } from "./limits.ts";
import { metadataPatchSchema, metadataSchema } from "./metadata.ts";

const hostsSchema = z
  .array(
    z
      .string()
      .max(limits.hostCharsMax)
      .regex(/^[a-z0-9*]([a-z0-9.*-]*[a-z0-9*])?$/, "must be a host in lower case, `*` for a part"),
  )
  .min(1)
  .max(limits.networkHostsMax);

export const networkSchema = z
  .strictObject({
    /** False: only the loopback of the sandbox. */
    internet: z.boolean().meta({ description: "false: only the loopback of the sandbox." }),
    /** Only these hosts, by HTTP and HTTPS. `*` stands for a part of a host. */
    allow: hostsSchema.optional().meta({
      description: "Only these hosts, by HTTP and HTTPS on ports 80 and 443; no other traffic.",
      example: ["*.example.com"],
    }),
    /** Not these hosts, even if allowed. */
    deny: hostsSchema.optional().meta({
      description: "Not these hosts, even if allowed; no other traffic than HTTP and HTTPS.",
    }),
  })
  .refine(({ internet, allow }) => internet || allow === undefined, {
    path: ["allow"],
    message: "needs `internet: true`",
  })
  .refine(({ internet, deny }) => internet || deny === undefined, {
    path: ["deny"],
    message: "needs `internet: true`",
  })
  .meta({ id: "Network" });

export const onIdleSchema = z.enum(["pause", "destroy", "none"]);

export const createCallSchema = z
  .strictObject({
    /** The environment of every command. */
    env: sandboxEnvSchema.default({}).meta({ description: "The environment of every command." }),
    /** The folder in which commands run; /workspace by default. */
    cwd: pathSchema
      .optional()
      .meta({ description: "The folder in which commands run; default: /workspace." }),
    /** The name of a configured image. */
    image: z
      .string()
      .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/)
      .optional()
      .meta({ description: "The name of a configured image." }),
    /** The name of a configured size; it cannot be changed later. */
    size: sizeNameSchema
      .optional()
      .meta({ description: "The name of a configured size; it cannot be changed later." }),
    /** Find or create: returns the sandbox of this scope if it exists. */
    scope: scopeSchema.optional().meta({
      description: "Find or create: returns the sandbox of this scope if it exists.",
    }),
    /** If the scope has a sandbox: `reuse` it (default), `replace` it, or fail with `error`. */
    onExisting: onExistingSchema.default("reuse"),
    /** Stored with the sandbox and shown in lists. */
    client: clientSchema
      .optional()
      .meta({ description: "Stored with the sandbox and shown in lists." }),
    /** Starts with the files of this checkpoint, and with the metadata, env and settings of its sandbox unless given. */
    from: checkpointIdSchema.optional().meta({
      description:
        "Start with the files of this checkpoint, and with metadata, env and settings of its sandbox unless given.",
    }),
    /** Internet access is allowed by default. */
    network: networkSchema.default({ internet: true }),
    metadata: metadataPatchSchema.default({}),
    /** False: starts paused, without a container until it is used. True by default. */
    start: z.boolean().default(true).meta({
      description: "false: the sandbox starts paused, without a container until it is used.",
    }),
    /** `auto` (default): a call starts a paused sandbox. `never`: only `start` does. */
    wake: z
      .enum(["auto", "never"])
      .default("auto")
      .meta({ description: "never: only POST …/start starts a paused sandbox." }),
    /** Milliseconds without work until `onIdle` happens; 600,000 by default, at most 7 days. */
    idleTimeoutMs: z
      .int()
      .min(limits.idleTimeoutMinMs)
      .max(limits.idleTimeoutMaxMs)
      .default(limits.idleTimeoutMs),
    /** `pause` by default. */
    onIdle: onIdleSchema.default("pause"),
    /** Milliseconds until the sandbox is destroyed, whatever it does; no limit by default, at most 1 year. */
    maxLifetimeMs: z.int().min(limits.maxLifetimeMinMs).max(limits.maxLifetimeMaxMs).optional(),
    /** Milliseconds that this call may wait for `running` or `failed`; 0 by default, at most 25,000. */
    waitMs: z
      .int()
      .min(0)
      .max(limits.waitMaxMs)
      .default(0)
      .meta({ description: "How long this call may wait for `running` or `failed`." }),
  })
  .meta({ id: "CreateCall" });

const forceSchema = flagSchema
  .default(false)
  .meta({ description: "Even if somebody else holds the lease." });

export const createQuerySchema = z.strictObject({ force: forceSchema });

export const destroyQuerySchema = z.strictObject({ force: forceSchema });

export const pauseQuerySchema = z.strictObject({
  force: forceSchema,
  discardFiles: flagSchema
    .default(false)
    .meta({ description: "Pauses even if the files cannot be saved." }),
});

export const stateNames = [
  "starting",
  "running",
  "pausing",
  "paused",
  "failed",
  "destroying",
  "destroyed",
] as const;

export const failReasonSchema = z.enum([
  "container_lost",
  "out_of_memory",
  "start_timed_out",
  "pause_timed_out",
  "start_refused",
  "image_missing",
  "snapshot_missing",
  "agent_unsupported",
  "disk_full",
  "restarted_too_often",
]);

/** Where the files of an incarnation came from: created, kept, restored from a saved tree, or from the image. */
export const filesFromSchema = z.enum(["new", "kept", "snapshot", "image"]);

export const sandboxSchema = z
  .strictObject({
    id: sandboxIdSchema,
    state: z.enum(stateNames),
    stateSince: z.iso.datetime(),
    createdAt: z.iso.datetime(),
    /** Why it failed or was destroyed. */
    reason: z.string().optional(),
    /** With `failed`: whether the next call that needs a container starts it again. */
    restartable: z.boolean().optional(),
    /** The current run of its container. */
    incarnation: z.string().optional(),
    /** Where the files of this incarnation came from. */
    files: filesFromSchema.optional(),
    isolation: isolationSchema.optional(),
    /** Settings that have no effect on this installation. */
    notes: z.array(z.string()).optional(),
    cwd: z.string().optional(),
    image: z.string().optional(),
    size: z.string().optional(),
    network: networkSchema,
    idleTimeoutMs: z.int(),
    onIdle: onIdleSchema,
    maxLifetimeMs: z.int().optional(),
    wake: z.enum(["auto", "never"]),
    scope: scopeSchema.optional(),
    client: clientSchema.optional(),
    /** Identifies the key that created it. */
    madeBy: z.string().optional().meta({ description: "Identifies the key that created it." }),
    /** In the response to a create: the sandbox existed. */
    found: z
      .literal(true)
      .optional()
      .meta({ description: "In the response to a create: it existed." }),
    /** In the response to a create: the sandbox that it replaced. */
    replaced: sandboxIdSchema
      .optional()
      .meta({ description: "In the response to a create: the sandbox that it replaced." }),
    /** The lists do not show this change yet. */
    listed: z
      .literal(false)
      .optional()
      .meta({ description: "The lists do not show this change yet." }),
    metadata: metadataSchema,
    /** Grows with each change of the metadata. */
    metadataVersion: z.int(),
    /** The plan that it is a member of. */
    plan: z.string().optional().meta({ description: "The plan that it is a member of." }),
    /** The current holder of the lease. */
    lease: z
      .strictObject({ holder: z.string(), expiresAt: z.iso.datetime() })
      .optional()
      .meta({ description: "The current holder of the lease." }),
  })
  .meta({ id: "Sandbox" });

export type StateName = (typeof stateNames)[number];
export type OnIdle = z.infer<typeof onIdleSchema>;
export type Network = z.infer<typeof networkSchema>;
/** The call before defaults are applied. */
export type CreateInput = z.input<typeof createCallSchema>;
export type CreateCall = z.infer<typeof createCallSchema>;
export type FailReason = z.infer<typeof failReasonSchema>;
export type Sandbox = z.infer<typeof sandboxSchema>;
