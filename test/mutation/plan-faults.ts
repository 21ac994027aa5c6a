/** Faults in plans, with the rules that must notice them. */
import { faultsByFile } from "./fault.ts";

export const planFaults = faultsByFile({
  "src/core/plan/membership.ts": [
    {
      name: "members come and go while a run commits them",
      find: "if (run === null) return undefined;",
      put: "if (run === null || run.n > 0) return undefined;",
      by: ["PL2", "PL32"],
    },
    {
      name: "a replacement counts as one more member",
      find: "if (member === undefined && countMembers(plan) >= limits.planMembersMax)",
      put: "if (countMembers(plan) >= limits.planMembersMax)",
      by: ["PL130"],
    },
  ],
  "src/core/plan/run.ts": [
    {
      name: "a run starts while a member is joining",
      find: "if (isMembershipChanging(plan)) return { wait: true };",
      put: "",
      by: ["PL25"],
    },
    {
      name: "the same call is not joined",
      find: "if (!isSame) return {",
      put: "return {",
      by: ["PL3"],
    },
    {
      name: "a member that cannot is left behind",
      find: 'if (no !== undefined && (mode === "atomic" || kind === "rollback")) return abort(now, no);',
      put: "",
      by: ["PL4", "PL8", "PL32"],
    },
    {
      name: "the run is decided before all have voted",
      find: "if (parts.some(({ vote }) => vote === null)) return null;",
      put: "if (parts.every(({ vote }) => vote === null)) return null;",
      by: ["PL32"],
    },
    {
      name: "a fresh instance continues an undecided run",
      find: "return run.decision === null ? withDecision(plan, run, abort(now, interrupted)) : plan;",
      put: "return plan;",
      by: ["PL14", "PL32"],
    },
    {
      name: "a run without an end is never given up",
      find: "const isLate = run.decision === null && now >= run.until;",
      put: "const isLate = run.decision === null && now < 0;",
      by: ["PL11"],
    },
    {
      name: "a response of an earlier run counts",
      find: "if (event.n !== run.n) return plan;",
      put: "",
      by: ["PL16"],
    },
    {
      name: "a run ends with the first member that has finished",
      find: "if (run.parts.some(({ ended }) => ended === null))",
      put: "if (run.parts.every(({ ended }) => ended === null))",
      by: ["PL12", "PL32"],
    },
    {
      name: "members are leased in the order in which they joined",
      find: ".sort((a, b) => (a.sandbox < b.sandbox ? -1 : 1))",
      put: "",
      by: ["PL1"],
    },
    {
      name: "a best effort without a result says that nothing changed",
      find: "abort(now, no ?? failureOf(nothingToDoError(kind)))",
      put: "abort(now, failureOf(nothingToDoError(kind)))",
      by: ["PL131"],
    },
    {
      name: "a run that is decided is joined",
      find: "return run.decision === null ? { join: run.n } : { wait: true };",
      put: "return { join: run.n };",
      by: ["PL132"],
    },
  ],
  "src/core/plan/pending.ts": [
    {
      name: "a member that voted no commits",
      find: 'if (decision?.go !== true || vote === null || "no" in vote) return "abort";',
      put: 'if (decision?.go !== true) return "abort";',
      by: ["PL5"],
    },
    {
      name: "the name is released before the members know",
      find: 'const haveAllLeft = leaving.every(({ phase }) => phase !== "leave");',
      put: "const haveAllLeft = leaving.length >= 0;",
      by: ["PL30"],
    },
  ],
  "src/objects/plan/actor.ts": [
    {
      name: "members get the decision before it is written",
      find: "    this.host.transaction(() => {\n      savePlan(",
      put: "    this.requests.sendPending(after);\n    this.host.transaction(() => {\n      savePlan(",
      by: ["PL14"],
    },
    {
      name: "a member that did not respond gets no retry",
      find: "this.requests.retryFailed(plan);",
      put: "this.requests.sendPending(plan);",
      by: ["PL10", "PL12"],
    },
    {
      name: "retries to an unreachable member do not slow down",
      find: "this.#retry.tries + (this.requests.hasFailed ? 1 : 0)",
      put: "0",
      by: ["PL12"],
    },
    {
      name: "after a stop no request is sent until a call comes",
      find: '    this.resume();\n    this.step((plan, now) => stepRun(plan, { type: "deadline" }, now));',
      put: '    this.step((plan, now) => stepRun(plan, { type: "deadline" }, now));',
      by: ["PL14"],
    },
  ],
  "src/objects/plan/requests.ts": [
    {
      name: "a member that is not done yet counts as unreachable",
      find: "if (!isContinuing) this.#failed.add(key);",
      put: "this.#failed.add(key);\n      if (!isContinuing) return;",
      by: ["PL139"],
    },
    {
      name: "a request without an effect is repeated at once",
      find: "if (!isContinuing) this.#failed.add(key);",
      put: "if (!isContinuing) return;",
      by: ["PL138"],
    },
  ],
  "src/objects/plan/runs.ts": [
    {
      name: "a call that was refused uses up its key",
      find: "return run === null || refusalOf(run) !== undefined ? undefined : known.n;",
      put: "return run === null ? undefined : known.n;",
      by: ["PL9"],
    },
    {
      name: "a key matches any call",
      find: "if (known.hash !== hash) {",
      put: 'if (known.hash === "") {',
      by: ["PL9"],
    },
  ],
  "src/objects/plan/history.ts": [
    {
      name: "runs are stored for ever",
      find: "    keptMax,\n",
      put: "    keptMax * 1_000,\n",
      by: ["PL19"],
    },
    {
      name: "runs without a result replace commits",
      find: "json_extract(head, '$.decision.go') = ?",
      put: "? IS NOT NULL",
      by: ["PL134"],
    },
  ],
  "src/objects/plan/perform.ts": [
    {
      name: "a holder that takes the lease of a member before its end loses it",
      find: "if (force) await",
      put: "if (force || !force) await",
      by: ["PL136"],
    },
  ],
  "src/objects/plan/members.ts": [
    {
      name: "members are destroyed although another caller holds their lease",
      find: 'if ("ok" in result && result.ok !== null) throw',
      put: 'if ("ok" in result && result.ok?.name === "") throw',
      by: ["PL135"],
    },
    {
      name: "a destroyed member is found for ever",
      find: "const mayReplace = request.createsSandbox && plan.run === null;",
      put: "const mayReplace = request.createsSandbox && plan.newestRun < 0;",
      by: ["PL133"],
    },
  ],
});
