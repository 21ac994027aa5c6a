/**
 * Owns the calls and answers of plans: sets of sandboxes that are committed or rolled back together.
 * Does not own how that is made to be all or nothing (core/plan).
 */
import { z } from "zod";
import { changesSchema } from "./changes.ts";
import { checkpointIdSchema } from "./checkpoint.ts";
import { sandboxIdSchema } from "./fields/id.ts";
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";
import { createCallSchema } from "./sandbox.ts";

const name = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
    "must be 1 to 128 letters, digits, `.`, `_` or `-`, the first a letter or digit",
  );

export const planNameSchema = name.meta({ example: "release-42" });
/** What a member is called within its plan. */
export const memberKeySchema = name.meta({ example: "frontend" });

export const planCallSchema = z.strictObject({}).meta({ id: "PlanCall" });

/** Without its own waiting: the plan's call waits. A sandbox that a scope may give is found by POST /v1/sandboxes. */
const memberCreateSchema = createCallSchema
  .omit({ scope: true, onExisting: true, waitMs: true })
  .meta({ id: "MemberCreate" });

export const memberAdoptSchema = z.strictObject({ sandboxId: sandboxIdSchema });
export const memberMakeSchema = z.strictObject({ create: memberCreateSchema });

export const memberCallSchema = z
  .union([memberAdoptSchema, memberMakeSchema])
  .meta({ id: "MemberCall" });

const modeSchema = z.enum(["atomic", "best_effort"]);

export const commitCallSchema = z
  .strictObject({
    mode: modeSchema.default("atomic").meta({
      description: "best_effort: those that can are committed, and each says how it went.",
    }),
    allowEmpty: z.boolean().default(false).meta({ description: "Also where nothing changed." }),
    waitMs: z
      .int()
      .min(0)
      .max(limits.waitMaxMs)
      .default(10_000)
      .meta({ description: "How long members may take to let go, all of them together." }),
  })
  .meta({ id: "CommitCall" });

export const rollbackCallSchema = commitCallSchema
  .pick({ waitMs: true })
  .meta({ id: "RollbackCall" });

const failureSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  holder: z.string().optional().meta({ description: "Who holds the lease that was waited for." }),
});

const memberOutcomes = [
  /** Its files of that moment are its committed ones. */
  "committed",
  /** It is as it was before. */
  "aborted",
  /** Its files are those of its last commit. */
  "rolled_back",
  /** It was never committed: there is nothing to go back to. */
  "skipped",
  /** It is gone, or could not be brought back; `error` says why. */
  "failed",
  /** Not yet. */
  "pending",
] as const;

export const memberResultSchema = z
  .strictObject({
    key: memberKeySchema,
    sandbox: sandboxIdSchema,
    outcome: z.enum(memberOutcomes),
    checkpoint: checkpointIdSchema.optional(),
    changes: changesSchema.optional().meta({
      description: "Of /workspace since its last commit; left out where that cannot be told.",
    }),
    error: failureSchema.optional(),
  })
  .meta({ id: "MemberResult" });

export const commitSchema = z
  .strictObject({
    commit: z.int().meta({ description: "Numbers only grow; rollbacks have them too." }),
    kind: z.enum(["commit", "rollback"]),
    mode: modeSchema,
    outcome: z
      .enum(["pending", "committed", "rolled_back", "aborted"])
      .meta({ description: "aborted: every member is as it was before." }),
    /** Why it was aborted. */
    error: failureSchema.optional(),
    startedAt: z.iso.datetime(),
    decidedAt: z.iso.datetime().optional(),
    endedAt: z.iso.datetime().optional(),
    members: z.array(memberResultSchema),
  })
  .meta({ id: "Commit" });

export const commitsSchema = z
  .strictObject({
    commits: z.array(commitSchema.omit({ members: true })),
    nextCursor: z.string().nullable(),
  })
  .meta({ id: "Commits" });

export const memberSchema = z
  .strictObject({
    key: memberKeySchema,
    sandbox: sandboxIdSchema,
    addedAt: z.iso.datetime(),
    /** `joining`: decided on, and not yet heard from. */
    state: z.enum(["joining", "member"]),
    committed: z
      .int()
      .nullable()
      .meta({ description: "The last commit that it was part of; null: none yet." }),
    replaced: sandboxIdSchema
      .optional()
      .meta({ description: "In the answer to a call that put it in the place of this one." }),
  })
  .meta({ id: "Member" });

export const planSchema = z
  .strictObject({
    name: planNameSchema,
    createdAt: z.iso.datetime(),
    members: z.array(memberSchema),
    /** What runs now: until it has ended the members cannot be changed. */
    running: commitSchema.omit({ members: true }).optional(),
    /** The newest that has ended. */
    last: commitSchema.omit({ members: true }).optional(),
  })
  .meta({ id: "Plan" });

export const plansSchema = z
  .strictObject({
    plans: z.array(z.strictObject({ name: planNameSchema, createdAt: z.iso.datetime() })),
    nextCursor: z.string().nullable(),
  })
  .meta({ id: "Plans" });

export const plansQuerySchema = z.strictObject({
  limit: wholeNumber(1, limits.plansPageMax).prefault(100),
  cursor: planNameSchema.optional(),
});

export const commitsQuerySchema = z.strictObject({
  limit: wholeNumber(1, limits.commitsStoredMax).prefault(20),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, "must be a cursor as nextCursor gave it")
    .optional(),
});

export const commitQuerySchema = z.strictObject({
  /** How long the call may wait for its end. */
  waitMs: wholeNumber(0, limits.waitMaxMs).prefault(0),
});

const fateSchema = z.enum(["keep", "destroy"]).default("keep");

/** From code it is a boolean, in an address its name. */
const forceSchema = z
  .union([z.boolean(), z.enum(["true", "false", "1", "0"])])
  .default(false)
  .meta({ description: "With `destroy`: also those whose lease somebody holds." });

export const planEndQuerySchema = z.strictObject({ sandboxes: fateSchema, force: forceSchema });

export const memberEndQuerySchema = z.strictObject({ sandbox: fateSchema, force: forceSchema });

export type PlansInput = z.input<typeof plansQuerySchema>;
export type PlansQuery = z.infer<typeof plansQuerySchema>;
export type MemberInput = z.input<typeof memberCallSchema>;
export type MemberCall = z.infer<typeof memberCallSchema>;
export type CommitInput = z.input<typeof commitCallSchema>;
export type CommitCall = z.infer<typeof commitCallSchema>;
export type RollbackInput = z.input<typeof rollbackCallSchema>;
export type RollbackCall = z.infer<typeof rollbackCallSchema>;
export type CommitMode = z.infer<typeof modeSchema>;
export type MemberOutcome = (typeof memberOutcomes)[number];
export type MemberResult = z.infer<typeof memberResultSchema>;
export type Commit = z.infer<typeof commitSchema>;
export type CommitsPage = z.infer<typeof commitsSchema>;
export type Member = z.infer<typeof memberSchema>;
export type Plan = z.infer<typeof planSchema>;
export type PlansPage = z.infer<typeof plansSchema>;
export type Failure = z.infer<typeof failureSchema>;
