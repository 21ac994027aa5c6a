/** Schemas of plans: sets of sandboxes that are committed or rolled back together. */
import { z } from "zod";
import { changesSchema, checkpointIdSchema } from "./checkpoint.ts";
import { component } from "./fields/component.ts";
import { sandboxIdSchema } from "./fields/id.ts";
import { nextCursor, pageLimit, queryNumber, wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";
import { createCallSchema } from "./sandbox.ts";

const name = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
    "must be 1 to 128 letters, digits, `.`, `_` or `-`, the first a letter or digit",
  );

export const planNameSchema = name.meta({ example: "release-42" });
/** The name of a member within its plan. */
export const memberKeySchema = name.meta({ example: "frontend" });

export const planCallSchema = component("PlanCall", {});

/** Without `waitMs`, because the plan's call waits, and without `scope`, which belongs to POST /v1/sandboxes. */
const memberCreateSchema = createCallSchema
  .omit({ scope: true, onExisting: true, waitMs: true })
  .meta({ id: "MemberCreate" });

export const memberAdoptSchema = z.strictObject({ sandboxId: sandboxIdSchema });
export const memberMakeSchema = z.strictObject({ create: memberCreateSchema });

export const memberCallSchema = z
  .union([memberAdoptSchema, memberMakeSchema])
  .meta({ id: "MemberCall" });

const modeSchema = z.enum(["atomic", "best_effort"]);

export const commitCallSchema = component("CommitCall", {
  mode: modeSchema
    .default("atomic")
    .describe("`atomic`: all members or none. `best_effort`: each member has its own outcome."),
  allowEmpty: z.boolean().default(false).describe("Also commits if nothing has changed."),
  waitMs: wholeNumber(0, limits.waitMaxMs)
    .default(10_000)
    .describe("Milliseconds to wait for the leases of all members together."),
});

export const rollbackCallSchema = commitCallSchema
  .pick({ waitMs: true })
  .meta({ id: "RollbackCall" });

const failureSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  holder: z.string().optional().describe("The holder of the lease that was not released in time."),
});

const memberOutcomes = [
  /** Its files at that moment are now its committed files. */
  "committed",
  /** Unchanged. */
  "aborted",
  /** Its files are those of its last commit again. */
  "rolled_back",
  /** It was never committed, so there is nothing to roll back to. */
  "skipped",
  /** It was destroyed, or could not be restored; `error` says why. */
  "failed",
  /** Not finished. */
  "pending",
] as const;

export const memberResultSchema = component("MemberResult", {
  key: memberKeySchema.describe("The name of the member."),
  sandbox: sandboxIdSchema.describe("The id of its sandbox."),
  outcome: z.enum(memberOutcomes).describe("What became of this member."),
  checkpoint: checkpointIdSchema.optional().describe("The saved files of this commit."),
  changes: changesSchema
    .optional()
    .describe("Changes of /workspace since its last commit; left out if they cannot be computed."),
  error: failureSchema.optional().describe("Why it failed or was aborted."),
});

export const commitSchema = component("Commit", {
  commit: z.int().describe("Number of the run; commits and rollbacks count together."),
  kind: z.enum(["commit", "rollback"]).describe("Whether it commits or rolls back."),
  mode: modeSchema.describe("`atomic`: all members or none."),
  outcome: z
    .enum(["pending", "committed", "rolled_back", "aborted"])
    .describe("aborted: every member is unchanged."),
  error: failureSchema.optional().describe("Why it was aborted."),
  startedAt: z.iso.datetime().describe("ISO 8601."),
  decidedAt: z.iso.datetime().optional().describe("ISO 8601; when it was certain how it ends."),
  endedAt: z.iso.datetime().optional().describe("ISO 8601."),
  members: z.array(memberResultSchema).describe("The outcome for each member."),
});

export const commitsSchema = component("Commits", {
  commits: z.array(commitSchema.omit({ members: true })),
  nextCursor: z.string().nullable(),
});

export const memberSchema = component("Member", {
  key: memberKeySchema.describe("The name of the member."),
  sandbox: sandboxIdSchema.describe("The id of its sandbox."),
  addedAt: z.iso.datetime().describe("ISO 8601."),
  state: z.enum(["joining", "member"]).describe("`joining`: the sandbox has not confirmed yet."),
  committed: z.int().nullable().describe("The last commit that included it; null if none did."),
  replaced: sandboxIdSchema
    .optional()
    .describe("In the response to the call that replaced a member: the sandbox before it."),
});

export const planSchema = component("Plan", {
  name: planNameSchema.describe("The name of the plan."),
  createdAt: z.iso.datetime().describe("ISO 8601."),
  members: z.array(memberSchema).describe("Its sandboxes, by key."),
  running: commitSchema
    .omit({ members: true })
    .optional()
    .describe("The run in progress: until it ends, members cannot be changed."),
  last: commitSchema.omit({ members: true }).optional().describe("The last run that has ended."),
});

export const plansSchema = component("Plans", {
  plans: z.array(z.strictObject({ name: planNameSchema, createdAt: z.iso.datetime() })),
  nextCursor: z.string().nullable(),
});

export const plansQuerySchema = z.strictObject({
  limit: pageLimit("Plans", limits.plansPageMax, 100),
  cursor: planNameSchema.optional().describe(nextCursor),
});

export const commitsQuerySchema = z.strictObject({
  limit: pageLimit("Commits", limits.commitsStoredMax, 20),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, "must be a `nextCursor` of an earlier page")
    .optional()
    .describe(nextCursor),
});

export const commitQuerySchema = z.strictObject({
  waitMs: queryNumber(0, limits.waitMaxMs)
    .prefault(0)
    .describe("Milliseconds that the call may wait for the end of the run; 0 by default."),
});

const dispositionSchema = z
  .enum(["keep", "destroy"])
  .default("keep")
  .describe("What happens to the sandboxes that leave the plan.");

/** A boolean in code, its name in a query. */
const forceSchema = z
  .union([z.boolean(), z.enum(["true", "false", "1", "0"])])
  .default(false)
  .describe("With `destroy`: also sandboxes whose lease is held.");

export const planEndQuerySchema = z.strictObject({
  sandboxes: dispositionSchema,
  force: forceSchema,
});

export const memberEndQuerySchema = z.strictObject({
  sandbox: dispositionSchema,
  force: forceSchema,
});

export type PlansInput = z.input<typeof plansQuerySchema>;
export type PlansQuery = z.infer<typeof plansQuerySchema>;
export type MemberInput = z.input<typeof memberCallSchema>;
export type CommitInput = z.input<typeof commitCallSchema>;
export type RollbackInput = z.input<typeof rollbackCallSchema>;
export type CommitMode = z.infer<typeof modeSchema>;
export type MemberOutcome = (typeof memberOutcomes)[number];
export type MemberResult = z.infer<typeof memberResultSchema>;
export type Commit = z.infer<typeof commitSchema>;
export type CommitsPage = z.infer<typeof commitsSchema>;
export type Member = z.infer<typeof memberSchema>;
export type Plan = z.infer<typeof planSchema>;
export type PlansPage = z.infer<typeof plansSchema>;
export type Failure = z.infer<typeof failureSchema>;
