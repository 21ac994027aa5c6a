/** Faults in plan participants, with the rules that must notice them. Each removes one check. */
import { faultsByFile } from "./fault.ts";

export const participantFaults = faultsByFile({
  "src/core/lease/step.ts": [
    {
      name: "a pinned lease expires",
      find: "if (state.pinned === true) return next;",
      put: "",
      by: ["PL53"],
    },
  ],
  "src/core/lease/hold.ts": [
    {
      name: "using a pinned lease unpins it",
      find: "...(pinned === undefined ? {} : { pinned }),",
      put: "",
      by: ["PL53"],
    },
    {
      name: "an expired lease can be pinned",
      find: 'if (state.name !== "held" || state.grant.token !== token) {\n    return refuseStep(lease, leaseLostFor(lease, token));\n  }\n  const pinned',
      put: 'if (state.name !== "held") return { lease, reply: { granted: true } };\n  const pinned',
      by: ["PL53"],
    },
  ],
  "src/core/plan/participant/step.ts": [
    {
      name: "a sandbox is taken from another plan",
      find: "if (participant.plan !== plan) {\n    return replyWith(participant, { refuse: inOtherPlanError(participant.plan) });\n  }",
      put: "",
      by: ["PL50"],
    },
    {
      name: "a plan takes a sandbox out of another",
      find: "if (participant?.plan !== plan) return replyWith(participant, { done: true });",
      put: "if (participant === null) return replyWith(participant, { done: true });",
      by: ["PL50"],
    },
    {
      name: "a lease that comes too late is kept",
      find: "releases: { tickets: [ticket], checkpoints: [] }",
      put: "releases: { tickets: [], checkpoints: [] }",
      by: ["PL51", "PL52"],
    },
    {
      name: "a tree that is saved too late is kept",
      find: "releases: { tickets: [], checkpoints } };",
      put: "releases: { tickets: [], checkpoints: [] } };",
      by: ["PL51", "PL52"],
    },
    {
      name: "a tree is accepted although its run was overtaken",
      find: 'if (isOurs && participant.phase.name === "held" && participant.phase.ticket === ticket) {',
      put: 'if (participant?.phase.name === "held") {',
      by: ["PL52"],
    },
    {
      name: "a member that leaves keeps its last commit",
      find: "releases: resourcesOf(participant),",
      put: "releases: { ...resourcesOf(participant), checkpoints: [] },",
      by: ["PL50"],
    },
  ],
  "src/core/plan/participant/finish.ts": [
    {
      name: "the former commit is never released",
      find: "checkpoints: committedCheckpoints(participant) };",
      put: "checkpoints: committedCheckpoints(participant).slice(1) };",
      by: ["PL52"],
    },
    {
      name: "a repeated end is unknown",
      find: "if (participant.last?.run === run) return { ended: participant.last.ended };",
      put: "",
      by: ["PL51"],
    },
    {
      name: "an abort of an unknown run does not close it",
      find: 'if (run > participant.run) {\n    return closeRun(advanceToRun(participant, run, { name: "over" }), nothingHere);\n  }',
      put: "if (run > participant.run) return replyWith(participant, { ended: nothingHere });",
      by: ["PL51"],
    },
    {
      name: "a rollback counts as done before its start is",
      find: "if (result === null) return replyWith(participant, { wait: true });",
      put: "",
      by: ["PL62"],
    },
  ],
  "src/core/plan/participant/participant.ts": [
    {
      name: "any start counts as that of the rollback",
      find: "if (!isStartOf(phase.startId, before) || isStartOf(phase.startId, after)) return participant;",
      put: "",
      by: ["PL62"],
    },
    {
      name: "a temporary failure counts as a try",
      find: 'state.name === "failed" && state.passes === true',
      put: "false",
      by: ["PL141"],
    },
    {
      name: "a step of an earlier run is accepted",
      find: "return run < participant.run ||",
      put: "return",
      by: ["PL51", "PL52"],
    },
    {
      name: "a step of a run that is over is accepted",
      find: ' || (run === participant.run && participant.phase.name === "over")',
      put: "",
      by: ["PL51", "PL52"],
    },
    {
      name: "a later run does not release what the earlier one had",
      find: "return { ...releaseRun(participant), participant: { ...participant, run, phase } };",
      put: "return { ...replyWith(participant, { done: true }), participant: { ...participant, run, phase } };",
      by: ["PL51", "PL52"],
    },
  ],
  "src/objects/sandbox/plan/participant.ts": [
    {
      name: "one that never ran cannot be committed",
      find: 'if (asBerthError(error)?.code !== "not_running") throw error;',
      put: "throw error;",
      by: ["PL61"],
    },
    {
      name: "changes are listed from the beginning",
      find: "changes({ from, to: handle, listMax })",
      put: "changes({ from: undefined, to: handle, listMax })",
      by: ["PL56"],
    },
    {
      name: "a repeated prepare saves again",
      find: "if (this.#preparing?.ticket === ticket) return this.#preparing.result;",
      put: "",
      by: ["PL56"],
    },
    {
      name: "a lease that was lost while the tree was saved is not missed",
      find: "        this.#state.leaseToken(ticket);\n        const vote",
      put: "        const vote",
      by: ["PL59"],
    },
    {
      name: "an abort does not wait for the snapshot",
      find: 'if (decision === "abort" && !(await this.#hasPrepared({ plan, run }))) return "again";',
      put: "",
      by: ["PL67"],
    },
    {
      name: "a run that was overtaken during its snapshot keeps the lease",
      find: "if (!this.#state.hasTicket(ticket)) this.#state.release(ticket);",
      put: "",
      by: ["PL67"],
    },
    {
      name: "a lease of a run is never pinned",
      find: 'this.#actor.stepLease({ type: "pin", token, until })',
      put: 'this.#actor.stepLease({ type: "used", token })',
      by: ["PL55"],
    },
    {
      name: "a destroyed member counts as present",
      find: 'if (!isEnding(state) || !("reason" in state)) {',
      put: 'if (!isEnding(state) || !("reason" in state) || state.reason !== "") {',
      by: ["PL60"],
    },
    {
      name: "a member is restored under the lease of another holder",
      find: "if (isHeld) this.#restore",
      put: "if (isHeld || true) this.#restore",
      by: ["PL140"],
    },
  ],
  "src/objects/sandbox/plan/participant-state.ts": [
    {
      name: "a tree that an earlier instance saved for a run stays",
      find: 'if (row.used_by === "plan" && !checkpoints.includes(row.id))\n        discardCheckpoint(this.#actor, row.id);',
      put: "",
      by: ["PL68"],
    },
    {
      name: "a lease that an earlier instance got for a run stays",
      find: "if (!this.hasTicket(state.grant.ticket)) this.release(state.grant.ticket);",
      put: "",
      by: ["PL68"],
    },
  ],
  "src/objects/sandbox/lease/leases.ts": [
    {
      name: "an aborted run keeps waiting for the lease",
      find: "      refuseUnwanted();\n",
      put: "",
      by: ["PL54"],
    },
  ],
  "src/objects/sandbox/lifecycle/directory-outbox.ts": [
    { name: "lists do not show the plan", find: "|| hasPlanChanged ||", put: "||", by: ["PL64"] },
  ],
});
