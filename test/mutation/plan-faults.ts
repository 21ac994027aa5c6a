/**
 * Faults in plans, with the rules that must notice them.
 */
import type { Fault } from "./faults.ts";

const membership = "src/core/plan/membership.ts";
const pending = "src/core/plan/pending.ts";
const run = "src/core/plan/run.ts";
const actor = "src/objects/plan/actor.ts";
const requests = "src/objects/plan/requests.ts";
const history = "src/objects/plan/history.ts";
const holders = "src/objects/plan/holders.ts";
const members = "src/objects/plan/members.ts";
const perform = "src/objects/plan/perform.ts";
const runs = "src/objects/plan/runs.ts";

export const planFaults: readonly Fault[] = [
  {
    name: "members come and go while a run commits them",
    file: membership,
    find: "if (run === null) return undefined;",
    put: "if (run === null || run.n > 0) return undefined;",
    by: ["PL2", "PL32"],
  },
  {
    name: "a run starts while a member is joining",
    file: run,
    find: "if (isMembershipChanging(plan)) return { wait: true };",
    put: "",
    by: ["PL25"],
  },
  {
    name: "the same call is not joined",
    file: run,
    find: "if (!isSame) return {",
    put: "return {",
    by: ["PL3"],
  },
  {
    name: "a member that cannot is left behind",
    file: run,
    find: 'if (no !== undefined && (mode === "atomic" || kind === "rollback")) return abort(now, no);',
    put: "",
    by: ["PL4", "PL8", "PL32"],
  },
  {
    name: "the run is decided before all have voted",
    file: run,
    find: "if (parts.some(({ vote }) => vote === null)) return null;",
    put: "if (parts.every(({ vote }) => vote === null)) return null;",
    by: ["PL32"],
  },
  {
    name: "a fresh instance continues an undecided run",
    file: run,
    find: "return run.decision === null ? withDecision(plan, run, abort(now, interrupted)) : plan;",
    put: "return plan;",
    by: ["PL14", "PL32"],
  },
  {
    name: "a run without an end is never given up",
    file: run,
    find: "const isLate = run.decision === null && now >= run.until;",
    put: "const isLate = run.decision === null && now < 0;",
    by: ["PL11"],
  },
  {
    name: "a response of an earlier run counts",
    file: run,
    find: "if (event.n !== run.n) return plan;",
    put: "",
    by: ["PL16"],
  },
  {
    name: "a run ends with the first member that has finished",
    file: run,
    find: "if (run.parts.some(({ ended }) => ended === null))",
    put: "if (run.parts.every(({ ended }) => ended === null))",
    by: ["PL12", "PL32"],
  },
  {
    name: "a member that voted no commits",
    file: pending,
    find: 'if (decision?.go !== true || vote === null || "no" in vote) return "abort";',
    put: 'if (decision?.go !== true) return "abort";',
    by: ["PL5"],
  },
  {
    name: "the name is released before the members know",
    file: pending,
    find: 'const haveAllLeft = leaving.every(({ phase }) => phase !== "leave");',
    put: "const haveAllLeft = leaving.length >= 0;",
    by: ["PL30"],
  },
  {
    name: "members get the decision before it is written",
    file: actor,
    find: "    this.host.transaction(() => {\n      savePlan(",
    put: "    this.requests.sendPending(after);\n    this.host.transaction(() => {\n      savePlan(",
    by: ["PL14"],
  },
  {
    name: "members are leased in the order in which they joined",
    file: run,
    find: ".sort((a, b) => (a.sandbox < b.sandbox ? -1 : 1))",
    put: "",
    by: ["PL1"],
  },
  {
    name: "a member that did not respond gets no retry",
    file: actor,
    find: "this.requests.retryFailed(plan);",
    put: "this.requests.sendPending(plan);",
    by: ["PL10", "PL12"],
  },
  {
    name: "retries to an unreachable member do not slow down",
    file: actor,
    find: "this.#retry.tries + (this.requests.hasFailed ? 1 : 0)",
    put: "0",
    by: ["PL12"],
  },
  {
    name: "a member that is not done yet counts as unreachable",
    file: requests,
    find: "if (!isContinuing) this.#failed.add(key);",
    put: "this.#failed.add(key);\n      if (!isContinuing) return;",
    by: ["PL139"],
  },
  {
    name: "a request without an effect is repeated at once",
    file: requests,
    find: "if (!isContinuing) this.#failed.add(key);",
    put: "if (!isContinuing) return;",
    by: ["PL138"],
  },
  {
    name: "after a stop no request is sent until a call comes",
    file: actor,
    find: '    this.resume();\n    this.step((plan, now) => stepRun(plan, { type: "deadline" }, now));',
    put: '    this.step((plan, now) => stepRun(plan, { type: "deadline" }, now));',
    by: ["PL14"],
  },
  {
    name: "a call that was refused uses up its key",
    file: runs,
    find: "return run === null || refusalOf(run) !== undefined ? undefined : known.n;",
    put: "return run === null ? undefined : known.n;",
    by: ["PL9"],
  },
  {
    name: "a key matches any call",
    file: runs,
    find: "if (known.hash !== hash) {",
    put: 'if (known.hash === "") {',
    by: ["PL9"],
  },
  {
    name: "runs are stored for ever",
    file: history,
    find: "    keptMax,\n",
    put: "    keptMax * 1_000,\n",
    by: ["PL19"],
  },
  {
    name: "runs without a result replace commits",
    file: history,
    find: "json_extract(head, '$.decision.go') = ?",
    put: "? IS NOT NULL",
    by: ["PL134"],
  },
  {
    name: "members are destroyed although another caller holds their lease",
    file: holders,
    find: 'if ("ok" in result && result.ok !== null) throw',
    put: 'if ("ok" in result && result.ok?.name === "") throw',
    by: ["PL135"],
  },
  {
    name: "a holder that takes the lease of a member before its end loses it",
    file: perform,
    find: "if (force) await",
    put: "if (force || !force) await",
    by: ["PL136"],
  },
  {
    name: "a replacement counts as one more member",
    file: membership,
    find: "if (member === undefined && countMembers(plan) >= limits.planMembersMax)",
    put: "if (countMembers(plan) >= limits.planMembersMax)",
    by: ["PL130"],
  },
  {
    name: "a best effort without a result says that nothing changed",
    file: run,
    find: "abort(now, no ?? failureOf(nothingToDoError(kind)))",
    put: "abort(now, failureOf(nothingToDoError(kind)))",
    by: ["PL131"],
  },
  {
    name: "a run that is decided is joined",
    file: run,
    find: "return run.decision === null ? { join: run.n } : { wait: true };",
    put: "return { join: run.n };",
    by: ["PL132"],
  },
  {
    name: "a destroyed member is found for ever",
    file: members,
    find: "const mayReplace = request.createsSandbox && plan.run === null;",
    put: "const mayReplace = request.createsSandbox && plan.newestRun < 0;",
    by: ["PL133"],
  },
];
