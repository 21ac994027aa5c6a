/** Schemas of templates: file trees that were built by steps, from which sandboxes start. */
import { z } from "zod";
import { checkpointIdSchema } from "./checkpoint.ts";
import { argvSchema, commandSchema, cwdSchema, userSchema } from "./exec.ts";
import { component } from "./fields/component.ts";
import { envSchema, utf8Bytes } from "./fields/env.ts";
import { imageNameSchema } from "./fields/image-reference.ts";
import { queryNumber, wholeNumber } from "./fields/scalar.ts";
import { sizeNameSchema } from "./fields/size.ts";
import { templateReferenceSchema } from "./fields/template-reference.ts";
import { limits } from "./limits.ts";
import { serviceCallSchema } from "./service.ts";

const programSchema = z.union([commandSchema, argvSchema], {
  error: "must be a shell command, or a list of a program and its arguments",
});

const stepKinds = ["run", "env", "user", "cwd"] as const;

const hasOneOf = (kinds: readonly string[]) => (value: object) =>
  kinds.filter((kind) => (value as Record<string, unknown>)[kind] !== undefined).length === 1;

export const templateStepSchema = z
  .strictObject({
    run: programSchema.optional().describe("A shell command, or a program with its arguments."),
    env: envSchema.optional().describe("For later steps, and for the sandboxes."),
    user: userSchema.optional().describe("Who runs later steps, and the commands of sandboxes."),
    cwd: cwdSchema
      .optional()
      .describe("Where later steps and commands of sandboxes run; created if it is missing."),
  })
  .refine(hasOneOf(stepKinds), `must have one of ${stepKinds.join(", ")}`)
  .meta({ id: "TemplateStep", example: { run: "echo built > /workspace/built" } });

const originSchema = z
  .strictObject({
    image: imageNameSchema.optional(),
    checkpoint: checkpointIdSchema.optional(),
    template: templateReferenceSchema.optional(),
  })
  .refine(
    (from) => Object.values(from).filter((value) => value !== undefined).length <= 1,
    "must have at most one of image, checkpoint, template",
  );

export const templateCallSchema = z
  .strictObject({
    name: templateReferenceSchema.describe("`name` or `name:tag`; the tag is `latest` by default."),
    from: originSchema.default({}).describe("What the build starts with; the machine's own files."),
    steps: z.array(templateStepSchema).max(limits.templateStepsMax).default([]),
    start: programSchema.optional().describe("A service of each sandbox: see `services`."),
    ready: z
      .strictObject({ port: wholeNumber(1, 65_535) })
      .optional()
      .describe("The service is up when something listens there; requests wait for that."),
    size: sizeNameSchema.optional().describe("Of the sandbox that builds."),
  })
  .refine(({ start, ready }) => ready === undefined || start !== undefined, {
    path: ["ready"],
    message: "needs `start`",
  })
  .refine((call) => utf8Bytes(JSON.stringify(call)) <= limits.templateBytesMax, {
    path: ["steps"],
    message: `must be at most ${limits.templateBytesMax} bytes as JSON, all of the call together`,
  })
  .meta({ id: "TemplateCall" });

export const templateBuildSchema = component("TemplateBuild", {
  id: z.string(),
  state: z.enum(["building", "ready", "failed", "cancelled"]),
  reason: z.string().optional().describe("Why it failed."),
  step: z.int().describe("Steps that are done."),
  steps: z.int().describe("All steps that run something."),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime().optional(),
  sandbox: z.string().optional().describe("Builds it, and is removed at the end."),
});

export const templateSchema = component("Template", {
  name: z.string(),
  tag: z.string(),
  version: z
    .int()
    .optional()
    .describe("Counts the successful builds of this name; none before the first."),
  createdAt: z.iso.datetime().optional().describe("When this version was saved."),
  expiresAt: z.iso.datetime().optional().describe("Where saved trees expire. Each use renews it."),
  bytes: z.int().optional().describe("Size on disk, if known."),
  image: z.string().optional(),
  cwd: z.string().optional(),
  user: z.string().optional(),
  envNames: z.array(z.string()).optional().describe("The values are not shown."),
  services: z.array(serviceCallSchema).optional(),
  build: templateBuildSchema.describe("The newest build of this name and tag."),
});

export const templatesSchema = component("Templates", {
  templates: z.array(templateSchema),
  nextCursor: z.null(),
});

const waitMs = queryNumber(0, limits.waitMaxMs).prefault(0);

export const templateQuerySchema = z.strictObject({
  waitMs: waitMs.describe("Milliseconds that this call may wait for the end of the build."),
});

export const templateLogQuerySchema = z.strictObject({
  after: queryNumber(0, Number.MAX_SAFE_INTEGER)
    .prefault(0)
    .describe("The `cursor` of an earlier part; 0 is the beginning."),
  waitMs: waitMs.describe("Milliseconds that this call may wait for more."),
});

export const templateLogSchema = component("TemplateLog", {
  build: z.string().describe("A cursor belongs to this build."),
  text: z.string(),
  cursor: z.int().describe("Pass it as `after` to read on."),
  gap: z.boolean().describe("What was between `after` and this text is no longer stored."),
  ended: z.boolean().describe("No more will follow."),
});

export type TemplateStep = z.infer<typeof templateStepSchema>;
export type TemplateInput = z.input<typeof templateCallSchema>;
export type TemplateCall = z.infer<typeof templateCallSchema>;
export type TemplateBuild = z.infer<typeof templateBuildSchema>;
export type Template = z.infer<typeof templateSchema>;
export type Templates = z.infer<typeof templatesSchema>;
export type TemplateLog = z.infer<typeof templateLogSchema>;
export type TemplateLogQuery = z.infer<typeof templateLogQuerySchema>;
/** The fields of a query before its defaults. */
export type TemplateLogInput = { after?: number | undefined; waitMs?: number | undefined };
