/**
 * Owns what a caller says to make a sandbox and what is told of one.
 * Does not own the record that the object keeps, which holds secrets as well.
 */
import { z } from "zod";
import { checkpointIdSchema } from "./checkpoint.ts";
import { keptEnvSchema, pathSchema } from "./fields/env.ts";
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
    internet: z.boolean().meta({ description: "false: nothing but the sandbox's own loopback." }),
    allow: hostsSchema.optional().meta({
      description: "Only these hosts, by HTTP and HTTPS on ports 80 and 443, and no other traffic.",
      example: ["*.example.com"],
    }),
    deny: hostsSchema.optional().meta({
      description: "Not these hosts, whatever is allowed; no other traffic than HTTP and HTTPS.",
    }),
  })
  .refine(({ internet, allow }) => internet || allow === undefined, {
    path: ["allow"],
    message: "chooses among what `internet: true` opens",
  })
  .refine(({ internet, deny }) => internet || deny === undefined, {
    path: ["deny"],
    message: "chooses among what `internet: true` opens",
  })
  .meta({ id: "Network" });

export const onIdleSchema = z.enum(["pause", "destroy", "none"]);

export const createCallSchema = z
  .strictObject({
    env: keptEnvSchema.default({}).meta({ description: "The environment of every command." }),
    cwd: pathSchema
      .optional()
      .meta({ description: "Where commands run; /workspace unless given." }),
    image: z
      .string()
      .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/)
      .optional()
      .meta({ description: "The name of a configured image." }),
    size: sizeNameSchema
      .optional()
      .meta({ description: "The name of a configured size; it never changes." }),
    scope: scopeSchema.optional().meta({
      description: "Find or create: while its sandbox lives, this gives that one.",
    }),
    onExisting: onExistingSchema.default("reuse"),
    client: clientSchema.optional().meta({ description: "Travels along and comes back in lists." }),
    from: checkpointIdSchema.optional().meta({
      description:
        "Begin with the files of this checkpoint, and with metadata, env and policy of its sandbox where none are given.",
    }),
    network: networkSchema.default({ internet: true }),
    metadata: metadataPatchSchema.default({}),
    start: z
      .boolean()
      .default(true)
      .meta({ description: "false: paused at once; no container until it is used." }),
    wake: z
      .enum(["auto", "never"])
      .default("auto")
      .meta({ description: "never: only POST …/start gives a paused sandbox a container." }),
    idleTimeoutMs: z
      .int()
      .min(limits.idleTimeoutMinMs)
      .max(limits.idleTimeoutMaxMs)
      .default(limits.idleTimeoutMs),
    onIdle: onIdleSchema.default("pause"),
    maxLifetimeMs: z.int().min(limits.maxLifetimeMinMs).max(limits.maxLifetimeMaxMs).optional(),
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
    .meta({ description: "Also where the files cannot be kept." }),
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

/** Where the files of a life came from: made anew, those that it had, a saved tree, or the image. */
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
    incarnation: z.string().optional(),
    /** Where the files of this life came from. */
    files: filesFromSchema.optional(),
    isolation: isolationSchema.optional(),
    /** What was asked for and has no meaning here. */
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
    madeBy: z.string().optional().meta({ description: "By which key: the same for all of its." }),
    found: z
      .literal(true)
      .optional()
      .meta({ description: "In the answer to a create: it was there already." }),
    replaced: sandboxIdSchema
      .optional()
      .meta({ description: "In the answer to a create that took the place of this one." }),
    listed: z
      .literal(false)
      .optional()
      .meta({ description: "Lists do not show this yet; they will." }),
    metadata: metadataSchema,
    metadataVersion: z.int(),
    plan: z.string().optional().meta({ description: "The plan that it is a member of." }),
    lease: z
      .strictObject({ holder: z.string(), expiresAt: z.iso.datetime() })
      .optional()
      .meta({ description: "Who holds the lease now." }),
  })
  .meta({ id: "Sandbox" });

export type StateName = (typeof stateNames)[number];
export type OnIdle = z.infer<typeof onIdleSchema>;
export type Network = z.infer<typeof networkSchema>;
/** As a caller writes it, before the defaults are filled in. */
export type CreateInput = z.input<typeof createCallSchema>;
export type CreateCall = z.infer<typeof createCallSchema>;
export type FailReason = z.infer<typeof failReasonSchema>;
export type Sandbox = z.infer<typeof sandboxSchema>;
