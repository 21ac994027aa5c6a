/**
 * Rows of the verbs on plans.
 */
import { response, type Schemas, type VerbRow } from "./row.ts";

const all = "/v1/plans";
const plan = `${all}/:plan` as const;
const member = `${plan}/sandboxes/:key` as const;

const runResponses = ({ commitSchema }: Schemas) => ({
  200: response(commitSchema, "The run has ended; `outcome` says how, for each member too."),
  202: response(
    commitSchema,
    "The run continues by itself: GET …/commits/:n?waitMs= waits for its end.",
  ),
});

export const planRows = (schemas: Schemas) =>
  ({
    listPlans: {
      method: "GET",
      path: all,
      call: "plans",
      summary: "List the plans by name",
      example: { query: { limit: 20 } },
      right: "key",
      needs: "read",
      query: schemas.plansQuerySchema,
      responses: { 200: response(schemas.plansSchema, "One page of plans.") },
    },
    putPlan: {
      method: "PUT",
      path: plan,
      summary: "Create a plan, or find it",
      example: { body: {} },
      right: "key",
      needs: "lifecycle",
      body: schemas.planCallSchema,
      responses: {
        201: response(schemas.planSchema, "Created."),
        200: response(schemas.planSchema, "It existed."),
      },
      errors: ["too_many"],
    },
    getPlan: {
      method: "GET",
      path: plan,
      summary: "Get a plan with its members, the run in progress and the last run",
      right: "key",
      needs: "read",
      responses: { 200: response(schemas.planSchema, "The plan now.") },
    },
    removePlan: {
      method: "DELETE",
      path: plan,
      summary: "Remove a plan; its sandboxes are kept unless `?sandboxes=destroy`",
      description: "Sandboxes whose lease is held are destroyed only with `force`.",
      example: { query: { sandboxes: "destroy" } },
      right: "key",
      needs: "lifecycle",
      query: schemas.planEndQuerySchema,
      responses: { 200: response(schemas.planSchema, "The plan that was removed.") },
      errors: ["plan_busy", "lease_held"],
    },
    putMember: {
      method: "PUT",
      path: member,
      summary: "Add a member to a plan: an existing sandbox, or a new one",
      description: "A new sandbox is created unless the plan already has a member with this key.",
      example: { body: { create: { metadata: { part: "frontend" } } } },
      right: "key",
      needs: "lifecycle",
      body: schemas.memberCallSchema,
      responses: {
        201: response(schemas.memberSchema, "Added."),
        200: response(schemas.memberSchema, "It was a member before."),
      },
      errors: [
        "plan_busy",
        "in_other_plan",
        "sandbox_destroyed",
        "too_many",
        "unsupported",
        "checkpoint_expired",
      ],
    },
    removeMember: {
      method: "DELETE",
      path: member,
      summary: "Remove a member; its sandbox is kept unless `?sandbox=destroy`",
      description: "A sandbox whose lease is held is destroyed only with `force`.",
      example: { query: { sandbox: "destroy" } },
      right: "key",
      needs: "lifecycle",
      query: schemas.memberEndQuerySchema,
      responses: { 200: response(schemas.memberSchema, "The member that was removed.") },
      errors: ["plan_busy", "lease_held"],
    },
    commitPlan: {
      method: "POST",
      path: `${plan}/commit`,
      summary: "Commit the files of all members, all or none",
      description: "The files of every member at this moment become its committed files.",
      example: { body: { mode: "atomic", waitMs: 10_000 } },
      right: "key",
      needs: "lifecycle",
      idempotent: true,
      body: schemas.commitCallSchema,
      responses: runResponses(schemas),
      errors: [
        "plan_busy",
        "nothing_to_commit",
        "lease_held",
        "idempotency_mismatch",
        "unsupported",
      ],
    },
    rollbackPlan: {
      method: "POST",
      path: `${plan}/rollback`,
      summary: "Roll the files of all members back to their last commit",
      description: "Everything that runs in the members ends.",
      example: { body: { waitMs: 10_000 } },
      right: "key",
      needs: "lifecycle",
      idempotent: true,
      body: schemas.rollbackCallSchema,
      responses: runResponses(schemas),
      errors: ["plan_busy", "nothing_to_roll_back", "lease_held", "idempotency_mismatch"],
    },
    listCommits: {
      method: "GET",
      path: `${plan}/commits`,
      summary: "List the commits and rollbacks of a plan, newest first",
      example: { query: { limit: 20 } },
      right: "key",
      needs: "read",
      query: schemas.commitsQuerySchema,
      responses: { 200: response(schemas.commitsSchema, "One page, without members.") },
    },
    getCommit: {
      method: "GET",
      path: `${plan}/commits/:n`,
      summary: "Get one commit or rollback with its members, or wait for its end",
      example: { query: { waitMs: 10_000 } },
      right: "key",
      needs: "read",
      query: schemas.commitQuerySchema,
      responses: runResponses(schemas),
    },
  }) as const satisfies Record<string, VerbRow>;
