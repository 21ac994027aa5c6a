/**
 * Owns the faults that are put into the member's side of plans. Each takes away one guard.
 */
import type { Fault } from "./faults.ts";

const step = "src/core/lease/step.ts";
const hold = "src/core/lease/hold.ts";
const move = "src/core/plan/participant/transition.ts";
const steps = "src/core/plan/participant/step.ts";
const finish = "src/core/plan/participant/finish.ts";
const seat = "src/core/plan/participant/participant.ts";
const member = "src/objects/sandbox/plan/participant.ts";
const memberSeat = "src/objects/sandbox/plan/participant-state.ts";
const save = "src/objects/sandbox/plan/participant-save.ts";
const leases = "src/objects/sandbox/lease/leases.ts";
const listing = "src/objects/sandbox/lifecycle/directory-outbox.ts";

export const memberFaults: readonly Fault[] = [
  {
    name: "a pinned lease expires",
    file: step,
    find: "if (state.pinned === true) return next;",
    put: "",
    by: ["PL53"],
  },
  {
    name: "whoever uses a pinned lease unpins it",
    file: hold,
    find: "...(pinned === undefined ? {} : { pinned }),",
    put: "",
    by: ["PL53"],
  },
  {
    name: "an expired lease can be pinned",
    file: hold,
    find: 'if (state.name !== "held" || state.grant.token !== token) {\n    return refuseStep(lease, leaseLostFor(lease, token));\n  }\n  const pinned',
    put: 'if (state.name !== "held") return { lease, reply: { granted: true } };\n  const pinned',
    by: ["PL53"],
  },
  {
    name: "a step of an earlier run is taken",
    file: move,
    find: "return run < participant.run ||",
    put: "return",
    by: ["PL51", "PL52"],
  },
  {
    name: "a step of a run that is over is taken",
    file: move,
    find: ' || (run === participant.run && participant.phase.name === "over")',
    put: "",
    by: ["PL51", "PL52"],
  },
  {
    name: "a later run leaves what the earlier one had",
    file: move,
    find: "return { ...releaseRun(participant), participant: { ...participant, run, phase } };",
    put: "return { ...replyWith(participant, { done: true }), participant: { ...participant, run, phase } };",
    by: ["PL51", "PL52"],
  },
  {
    name: "a sandbox is taken from another plan",
    file: steps,
    find: "if (participant.plan !== plan) {\n    return replyWith(participant, { refuse: inOtherPlanError(participant.plan) });\n  }",
    put: "",
    by: ["PL50"],
  },
  {
    name: "a plan takes a sandbox out of another",
    file: steps,
    find: "if (participant?.plan !== plan) return replyWith(participant, { done: true });",
    put: "if (participant === null) return replyWith(participant, { done: true });",
    by: ["PL50"],
  },
  {
    name: "a lease that comes too late is kept",
    file: steps,
    find: "releases: { tickets: [ticket], checkpoints: [] }",
    put: "releases: { tickets: [], checkpoints: [] }",
    by: ["PL51", "PL52"],
  },
  {
    name: "a tree that is saved too late is kept",
    file: steps,
    find: "releases: { tickets: [], checkpoints } };",
    put: "releases: { tickets: [], checkpoints: [] } };",
    by: ["PL51", "PL52"],
  },
  {
    name: "a tree is taken though its run was overtaken",
    file: steps,
    find: 'if (isOurs && participant.phase.name === "held" && participant.phase.ticket === ticket) {',
    put: 'if (participant?.phase.name === "held") {',
    by: ["PL52"],
  },
  {
    name: "who leaves keeps its last commit",
    file: steps,
    find: "releases: resourcesOf(participant),",
    put: "releases: { ...resourcesOf(participant), checkpoints: [] },",
    by: ["PL50"],
  },
  {
    name: "the former commit is never given up",
    file: finish,
    find: "checkpoints: committedCheckpoints(participant) };",
    put: "checkpoints: committedCheckpoints(participant).slice(1) };",
    by: ["PL52"],
  },
  {
    name: "an end that is asked for again is not known",
    file: finish,
    find: "if (participant.last?.run === run) return { ended: participant.last.ended };",
    put: "",
    by: ["PL51"],
  },
  {
    name: "an abort of a run that was never heard of leaves its door open",
    file: finish,
    find: 'if (run > participant.run) {\n    return closeRun(advanceToRun(participant, run, { name: "over" }), nothingHere);\n  }',
    put: "if (run > participant.run) return replyWith(participant, { ended: nothingHere });",
    by: ["PL51"],
  },
  {
    name: "a rollback counts as done before its start is",
    file: finish,
    find: "if (result === null) return replyWith(participant, { wait: true });",
    put: "",
    by: ["PL62"],
  },
  {
    name: "any start counts as that of the rollback",
    file: seat,
    find: "if (!isStartOf(phase.startId, before) || isStartOf(phase.startId, after)) return participant;",
    put: "",
    by: ["PL62"],
  },
  {
    name: "a repeated prepare saves again",
    file: member,
    find: "if (this.#preparing?.ticket === ticket) return this.#preparing.done;",
    put: "",
    by: ["PL56"],
  },
  {
    name: "a lease that was lost while the tree was saved is not missed",
    file: member,
    find: "        this.#seat.token(ticket);\n        const vote",
    put: "        const vote",
    by: ["PL59"],
  },
  {
    name: "an abort does not wait for what is being saved",
    file: member,
    find: 'if (verdict === "abort" && !(await this.#isQuiet({ plan, run }))) return "again";',
    put: "",
    by: ["PL67"],
  },
  {
    name: "whoever was overtaken while it saved keeps the lease",
    file: member,
    find: "if (!this.#seat.isOf(ticket)) this.#seat.letGo(ticket);",
    put: "",
    by: ["PL67"],
  },
  {
    name: "a lease of a run is never pinned",
    file: member,
    find: 'this.#actor.lease({ type: "pin", token, until })',
    put: 'this.#actor.lease({ type: "used", token })',
    by: ["PL55"],
  },
  {
    name: "a destroyed member is told as if it were there",
    file: member,
    find: 'if (!isOver(state) || !("reason" in state)) {',
    put: 'if (!isOver(state) || !("reason" in state) || state.reason !== "") {',
    by: ["PL60"],
  },
  {
    name: "a member is brought back under the lease of somebody else",
    file: member,
    find: "if (isHeld) this.#restore",
    put: "if (isHeld || true) this.#restore",
    by: ["PL140"],
  },
  {
    name: "what passes counts as a try",
    file: seat,
    find: 'state.name === "failed" && state.passes === true',
    put: "false",
    by: ["PL141"],
  },
  {
    name: "what an earlier instance saved for a run stays",
    file: memberSeat,
    find: 'if (row.used_by === "plan" && !checkpoints.includes(row.id)) giveUp(this.#actor, row.id);',
    put: "",
    by: ["PL68"],
  },
  {
    name: "what an earlier instance leased for a run stays",
    file: memberSeat,
    find: "if (!this.isOf(state.grant.ticket)) this.letGo(state.grant.ticket);",
    put: "",
    by: ["PL68"],
  },
  {
    name: "one that never ran cannot be committed",
    file: save,
    find: 'if (asBerthError(error)?.code !== "not_running") throw error;',
    put: "throw error;",
    by: ["PL61"],
  },
  {
    name: "changes are told since the beginning",
    file: save,
    find: "changes({ from, to: handle, listMax })",
    put: "changes({ from: undefined, to: handle, listMax })",
    by: ["PL56"],
  },
  {
    name: "who was aborted waits on for the lease",
    file: leases,
    find: "      stillWanted();\n",
    put: "",
    by: ["PL54"],
  },
  {
    name: "lists do not learn of a plan",
    file: listing,
    find: "|| isMoved ||",
    put: "||",
    by: ["PL64"],
  },
];
