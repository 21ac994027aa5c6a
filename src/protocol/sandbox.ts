/** Schemas of a sandbox: the call that creates it, and its public view. The stored record also has secrets. */
import { z } from "zod";
import { checkpointIdSchema } from "./checkpoint.ts";
import { BerthError } from "./errors.ts";
import { userSchema } from "./exec.ts";
import { component } from "./fields/component.ts";
import { pathSchema, sandboxEnvSchema } from "./fields/env.ts";
import { stateNames } from "./fields/forms.ts";
import { sandboxIdSchema, tenantIdSchema } from "./fields/id.ts";
import { imageNameSchema } from "./fields/image-reference.ts";
import {
  checkpointEverySchema,
  destroyPausedAfterSchema,
  idleTimeoutSchema,
  keepCheckpointsSchema,
  maxLifetimeSchema,
} from "./fields/life.ts";
import { flagSchema, wholeNumber } from "./fields/scalar.ts";
import { clientSchema, onExistingSchema, scopeSchema } from "./fields/scope.ts";
import { sizeNameSchema } from "./fields/size.ts";
import { templateReferenceSchema } from "./fields/template-reference.ts";
import { isolationSchema } from "./health.ts";
import { limits } from "./limits.ts";
import { metadataPatchSchema, metadataSchema } from "./metadata.ts";
import { serviceCallsSchema } from "./service.ts";

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
    internet: z.boolean().describe("False: only the loopback of the sandbox."),
    allow: hostsSchema.optional().meta({
      description:
        "Only these hosts, by HTTP and HTTPS on ports 80 and 443. `*` stands for a part of one.",
      example: ["*.example.com"],
    }),
    deny: hostsSchema
      .optional()
      .describe("Not these hosts, even if allowed; no other traffic than HTTP and HTTPS."),
  })
  .refine(({ internet, allow }) => internet || allow === undefined, {
    path: ["allow"],
    message: "needs `internet: true`",
  })
  .refine(({ internet, deny }) => internet || deny === undefined, {
    path: ["deny"],
    message: "needs `internet: true`",
  })
  .meta({ id: "Network", description: "What the sandbox can reach." });

export const onIdleSchema = z.enum(["pause", "destroy", "none"]);
export const onEndSchema = z.enum(["pause", "destroy"]);

export const wakeSchema = z
  .enum(["auto", "never"])
  .describe("`auto`: a call starts a paused sandbox. `never`: only POST …/start does.");

export const createCallSchema = component("CreateCall", {
  env: sandboxEnvSchema.default({}).describe("The environment of every command."),
  cwd: pathSchema.optional().describe("The folder in which commands run; /workspace by default."),
  image: imageNameSchema
    .optional()
    .describe("A configured or imported image by its name, or one that was pulled."),
  size: sizeNameSchema
    .optional()
    .describe("The name of a configured size; it cannot be changed later."),
  scope: scopeSchema
    .optional()
    .describe("Find or create: returns the sandbox of this scope if it exists."),
  onExisting: onExistingSchema
    .default("reuse")
    .describe("If the scope has a sandbox: `reuse` it, `replace` it, or fail with `error`."),
  client: clientSchema.optional().describe("Stored with the sandbox and shown in lists."),
  from: checkpointIdSchema
    .optional()
    .describe("Starts with the files, and unless given the settings, of this checkpoint."),
  template: templateReferenceSchema
    .optional()
    .describe("Starts with the files, and unless given the settings, of this template."),
  user: userSchema
    .optional()
    .describe("Who runs commands, unless their call says otherwise; `berth` by default."),
  network: networkSchema.default({ internet: true }).describe("What the sandbox can reach."),
  metadata: metadataPatchSchema.default({}).describe("Your own keys and values."),
  start: z
    .boolean()
    .default(true)
    .describe("False: starts paused, without a container until it is used."),
  wake: wakeSchema.default("auto"),
  idleTimeoutMs: idleTimeoutSchema.default(limits.idleTimeoutMs),
  onIdle: onIdleSchema
    .default("pause")
    .describe("What happens after `idleTimeoutMs` without work."),
  maxLifetimeMs: maxLifetimeSchema.optional(),
  destroyPausedAfterMs: destroyPausedAfterSchema.optional(),
  checkpointEveryMs: checkpointEverySchema
    .nullable()
    .optional()
    .describe("Milliseconds between its own checkpoints; none by default."),
  services: serviceCallsSchema.optional(),
  keepCheckpoints: keepCheckpointsSchema.optional(),
  count: wholeNumber(1, limits.createCountMax)
    .optional()
    .describe("Creates that many alike at once, all or none; `others` has all but the first."),
  endAfterMs: wholeNumber(limits.maxLifetimeMinMs, limits.maxLifetimeMaxMs)
    .optional()
    .describe(
      "Milliseconds from each start until `onEnd` happens, whatever runs; PUT …/end moves the end. None by default.",
    ),
  onEnd: onEndSchema.optional().describe("What happens at the end; `destroy` by default."),
  sudo: z.boolean().optional().describe("False: its commands cannot become root."),
  publicPorts: z
    .boolean()
    .optional()
    .describe("True: everyone reaches each port by its address without a token."),
  waitMs: wholeNumber(0, limits.waitMaxMs)
    .default(0)
    .describe("Milliseconds that this call may wait for `running` or `failed`."),
});

const forceSchema = flagSchema.default(false).describe("Even if somebody else holds the lease.");

export const createQuerySchema = z.strictObject({ force: forceSchema });

export const destroyQuerySchema = z.strictObject({ force: forceSchema });

export const pauseQuerySchema = z.strictObject({
  force: forceSchema,
  discardFiles: flagSchema.default(false).describe("Pauses even if the files cannot be saved."),
});

export const endCallSchema = component("EndCall", {
  afterMs: wholeNumber(0, limits.maxLifetimeMaxMs).describe(
    "Milliseconds from now until `onEnd` happens; 0: now.",
  ),
  onlyLater: z
    .boolean()
    .default(false)
    .describe("Moves the end only if that makes it later; an earlier one stays as it is."),
});

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

export const sandboxSchema = component("Sandbox", {
  id: sandboxIdSchema.describe("Identifies the sandbox, also in `berth.get`."),
  state: z
    .enum(stateNames)
    .describe("`running` while its container runs; `paused` when only its files are kept."),
  stateSince: z.iso.datetime().describe("When it got this state, ISO 8601."),
  createdAt: z.iso.datetime().describe("ISO 8601."),
  reason: z.string().optional().describe("Why it failed or was destroyed."),
  restartable: z
    .boolean()
    .optional()
    .describe("With `failed`: whether the next call that needs a container starts it again."),
  message: z
    .string()
    .optional()
    .describe("With `failed`: why, in the words of the platform, where it gave any."),
  incarnation: z.string().optional().describe("The current run of its container."),
  files: filesFromSchema.optional().describe("Where the files of this incarnation came from."),
  from: checkpointIdSchema.optional().describe("The checkpoint that its first files came from."),
  isolation: isolationSchema.optional().describe("How the installation isolates it."),
  notes: z
    .array(z.string())
    .optional()
    .describe("Settings that have no effect on this installation."),
  cwd: z.string().optional().describe("The folder in which commands run; /workspace if left out."),
  image: z.string().optional().describe("The name of its configured image."),
  template: z.string().optional().describe("The name, tag and version of its template."),
  user: z.string().optional().describe("Who runs its commands; `berth` if left out."),
  size: z.string().optional().describe("The name of its configured size."),
  network: networkSchema,
  idleTimeoutMs: z.int().describe("Milliseconds without work until `onIdle` happens."),
  onIdle: onIdleSchema.describe("What happens after `idleTimeoutMs` without work."),
  maxLifetimeMs: z
    .int()
    .optional()
    .describe("Milliseconds from its creation until it is destroyed; none if left out."),
  destroyPausedAfterMs: z
    .int()
    .optional()
    .describe("Milliseconds in `paused` until it is destroyed; none if left out."),
  checkpointEveryMs: z
    .int()
    .optional()
    .describe("Milliseconds between its own checkpoints; none if left out."),
  keepCheckpoints: z
    .int()
    .optional()
    .describe("How many checkpoints are kept; the oldest is removed."),
  settingsVersion: z.int().optional().describe("How often its settings were changed, if ever."),
  endAfterMs: z
    .int()
    .optional()
    .describe("Milliseconds from each start until `onEnd` happens; none if left out."),
  onEnd: onEndSchema.optional().describe("What happens at the end."),
  endsAt: z.iso.datetime().optional().describe("While it runs: when `onEnd` happens."),
  publicPorts: z.literal(true).optional().describe("Whether its ports answer without a token."),
  sudo: z.literal(false).optional().describe("Whether its commands may become root."),
  wake: wakeSchema.describe("`auto`: a call starts it when it is paused."),
  scope: scopeSchema.optional().describe("What it works on, such as a repository and a branch."),
  client: clientSchema.optional().describe("What its creator says about itself."),
  restoredAt: z.iso
    .datetime()
    .optional()
    .describe("When its files were last replaced by those of a checkpoint."),
  madeBy: z.string().optional().describe("Identifies the key that created it."),
  tenantId: tenantIdSchema.optional().describe("In the response to a create: see the list."),
  found: z.literal(true).optional().describe("In the response to a create: the sandbox existed."),
  replaced: sandboxIdSchema
    .optional()
    .describe("In the response to a create: the sandbox that it replaced."),
  others: z
    .array(sandboxIdSchema)
    .optional()
    .describe("In the response to a create with `count`: the other sandboxes."),
  listed: z.literal(false).optional().describe("The lists do not show this change yet."),
  metadata: metadataSchema,
  metadataVersion: z.int().describe("Grows with each change of the metadata."),
  plan: z.string().optional().describe("The plan that it is a member of."),
  lease: z
    .strictObject({ holder: z.string(), expiresAt: z.iso.datetime() })
    .optional()
    .describe("The current holder of the lease."),
});

export type StateName = (typeof stateNames)[number];
export type OnEnd = z.infer<typeof onEndSchema>;
export type EndCall = z.infer<typeof endCallSchema>;
export type OnIdle = z.infer<typeof onIdleSchema>;
export type Network = z.infer<typeof networkSchema>;
/** The call before defaults are applied. */
export type CreateInput = z.input<typeof createCallSchema>;
export type CreateCall = z.infer<typeof createCallSchema>;
export type FailReason = z.infer<typeof failReasonSchema>;
export type Sandbox = z.infer<typeof sandboxSchema>;

/** Undefined if the network has no list of hosts. */
export function hostListError(network: Network): BerthError | undefined {
  const field = (["allow", "deny"] as const).find((name) => network[name] !== undefined);
  if (field === undefined) return undefined;
  return new BerthError("unsupported", `network.${field}: this installation cannot filter hosts.`, {
    hint: "Leave it out: only `internet: true` and `internet: false` are supported here.",
    facts: { field: `network.${field}` },
  });
}
