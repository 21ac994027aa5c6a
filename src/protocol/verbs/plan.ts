/**
 * Owns the routes of plans.
 */
import type { ErrorCode } from "../errors.ts";
import {
  commitCallSchema,
  commitQuerySchema,
  commitSchema,
  commitsQuerySchema,
  commitsSchema,
  memberCallSchema,
  memberEndQuerySchema,
  memberSchema,
  planCallSchema,
  planEndQuerySchema,
  planSchema,
  plansQuerySchema,
  plansSchema,
  rollbackCallSchema,
} from "../plan.ts";
import { atTheDoor, badBody, type Route } from "./verb.ts";

const all = "/v1/plans";
const one = `${all}/:plan`;
const member = `${one}/sandboxes/:key`;

const ofOnePlan: ErrorCode[] = [...atTheDoor, "not_found", "unavailable", "bad_request"];

const run = {
  200: { schema: commitSchema, meaning: "It has ended; `outcome` says how, for each member too." },
  202: {
    schema: commitSchema,
    meaning: "It goes on, and ends without its caller: GET …/commits/:n?waitMs= waits for that.",
  },
};

export const planRoutes = {
  listPlans: {
    method: "GET",
    path: all,
    summary: "The plans, by name",
    right: "key",
    needs: "read",
    query: plansQuerySchema,
    answers: { 200: { schema: plansSchema, meaning: "One page of them." } },
    errors: [...atTheDoor, "bad_request"],
  },
  putPlan: {
    method: "PUT",
    path: one,
    summary: "Make a plan, or find it made",
    right: "key",
    needs: "lifecycle",
    body: planCallSchema,
    answers: {
      201: { schema: planSchema, meaning: "Made." },
      200: { schema: planSchema, meaning: "It was there." },
    },
    errors: [...ofOnePlan, ...badBody, "too_many"],
  },
  getPlan: {
    method: "GET",
    path: one,
    summary: "A plan with its members, what runs, and what ran last",
    right: "key",
    needs: "read",
    answers: { 200: { schema: planSchema, meaning: "As it is now." } },
    errors: ofOnePlan,
  },
  removePlan: {
    method: "DELETE",
    path: one,
    summary:
      "End a plan; its sandboxes are kept, or destroyed (?sandboxes=destroy) if nobody holds one",
    right: "key",
    needs: "lifecycle",
    query: planEndQuerySchema,
    answers: { 200: { schema: planSchema, meaning: "It was this one." } },
    errors: [...ofOnePlan, "plan_busy", "lease_held"],
  },
  putMember: {
    method: "PUT",
    path: member,
    summary:
      "Give the plan a member: a sandbox that there is, or one that is made unless the key has one",
    right: "key",
    needs: "lifecycle",
    body: memberCallSchema,
    answers: {
      201: { schema: memberSchema, meaning: "It is a member now." },
      200: { schema: memberSchema, meaning: "It was already." },
    },
    errors: [
      ...ofOnePlan,
      ...badBody,
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
    summary:
      "Take a member out; its sandbox is kept, or destroyed (?sandbox=destroy) if nobody holds it",
    right: "key",
    needs: "lifecycle",
    query: memberEndQuerySchema,
    answers: { 200: { schema: memberSchema, meaning: "It was this one." } },
    errors: [...ofOnePlan, "plan_busy", "lease_held"],
  },
  commitPlan: {
    method: "POST",
    path: `${one}/commit`,
    summary:
      "Make the files of all members, as they are at this moment, their committed ones; all or none",
    right: "key",
    needs: "lifecycle",
    keyed: true,
    body: commitCallSchema,
    answers: run,
    errors: [
      ...ofOnePlan,
      ...badBody,
      "plan_busy",
      "nothing_to_commit",
      "lease_held",
      "idempotency_mismatch",
      "unsupported",
    ],
  },
  rollbackPlan: {
    method: "POST",
    path: `${one}/rollback`,
    summary: "Bring the files of all members back to their last commit; what runs in them ends",
    right: "key",
    needs: "lifecycle",
    keyed: true,
    body: rollbackCallSchema,
    answers: run,
    errors: [
      ...ofOnePlan,
      ...badBody,
      "plan_busy",
      "nothing_to_roll_back",
      "lease_held",
      "idempotency_mismatch",
    ],
  },
  listCommits: {
    method: "GET",
    path: `${one}/commits`,
    summary: "What the plan has committed, aborted and rolled back, newest first",
    right: "key",
    needs: "read",
    query: commitsQuerySchema,
    answers: { 200: { schema: commitsSchema, meaning: "One page of them, without members." } },
    errors: ofOnePlan,
  },
  getCommit: {
    method: "GET",
    path: `${one}/commits/:n`,
    summary: "One commit or rollback with its members; may wait for its end (?waitMs=)",
    right: "key",
    needs: "read",
    query: commitQuerySchema,
    answers: run,
    errors: ofOnePlan,
  },
} as const satisfies Record<string, Route>;
