/**
 * Faults in leases, metadata and the agent of the model, with the rules that must notice them. Each replaces one
 * piece of text that occurs exactly once.
 */
export type Fault = {
  name: string;
  file: string;
  find: string;
  put: string;
  /** The rules of which a test must fail. */
  by: readonly string[];
};

const step = "src/core/lease/step.ts";
const queue = "src/core/lease/queue.ts";
const hold = "src/core/lease/hold.ts";
const end = "src/core/lease/end.ts";
const check = "src/core/lease/check.ts";
const refusals = "src/core/lease/refusals.ts";
const deadline = "src/core/lease/deadline.ts";
const view = "src/core/lease/view.ts";
const patch = "src/core/metadata/patch.ts";
const agent = "test/model-check/agent.ts";

export const faults: readonly Fault[] = [
  {
    name: "an expired lease is not drained",
    file: step,
    find: 'return loseLease(next, "expired", now);',
    put: 'return endLease(next, "expired", now);',
    by: ["Q12", "Q23"],
  },
  {
    name: "a newcomer overtakes the waiters",
    file: queue,
    find: 'state.name === "free" && waiters.length === 0 && inFlight.others === 0',
    put: 'state.name === "free" && inFlight.others === 0',
    by: ["Q2"],
  },
  {
    name: "the lease is granted while calls of others run",
    file: queue,
    find: 'state.name === "free" && waiters.length === 0 && inFlight.others === 0',
    put: 'state.name === "free" && waiters.length === 0',
    by: ["Q18", "Q23", "Q24"],
  },
  {
    name: "the turn is offered while calls of others run",
    file: step,
    find: "|| inFlight.others > 0)\n    return lease;",
    put: ")\n    return lease;",
    by: ["Q18", "Q23", "Q24"],
  },
  {
    name: "a release ignores running calls",
    file: end,
    find: 'if (inFlight.own === 0) {\n    return { lease: endLease(lease, "released", now)',
    put: 'if (inFlight.own >= 0) {\n    return { lease: endLease(lease, "released", now)',
    by: ["Q14", "Q23"],
  },
  {
    name: "a dead waiter keeps its turn for ever",
    file: step,
    find: 'if (state.name === "offered" && now >= state.until) {',
    put: 'if (state.name === "offered" && now < 0) {',
    by: ["Q7", "Q20", "Q24"],
  },
  {
    name: "a lease that has ended can be renewed",
    file: hold,
    find: "    return refuseStep(lease, leaseLostFor(lease, token));\n  }\n  return { lease: extendLease(",
    put: "    return { lease, reply: { granted: true } };\n  }\n  return { lease: extendLease(",
    by: ["Q10", "Q23"],
  },
  {
    name: "the fence starts again at the end of the sandbox",
    file: end,
    find: "waiters: [], fence: held.fence + 1 }",
    put: "waiters: [], fence: 0 }",
    by: ["Q19"],
  },
  {
    name: "a grant does not raise the fence",
    file: hold,
    find: 'const fence = lease.fence + 1;\n  return {\n    ...lease,\n    fence,\n    state: {\n      name: "held"',
    put: 'const fence = lease.fence;\n  return {\n    ...lease,\n    fence,\n    state: {\n      name: "held"',
    by: ["Q19", "Q23"],
  },
  {
    name: "a loss does not raise the fence",
    file: end,
    find: "const fence = lease.fence + 1;\n  return {\n    ...endLease(",
    put: "const fence = lease.fence;\n  return {\n    ...endLease(",
    by: ["Q15", "Q23", "Q24"],
  },
  {
    name: "a confirmation of an earlier fence ends the drain",
    file: end,
    find: '"draining" || fence < lease.state.fence)',
    put: '"draining")',
    by: ["Q16", "Q23", "Q24"],
  },
  {
    name: "a use shortens the lease",
    file: hold,
    find: "Math.max(expiresAt, until)",
    put: "Math.min(expiresAt, until)",
    by: ["Q11", "Q23"],
  },
  {
    name: "a clock that steps backwards shortens the lease",
    file: hold,
    find: "Math.max(expiresAt, until)",
    put: "until",
    by: ["Q11"],
  },
  {
    name: "a running call does not keep its lease alive",
    file: step,
    find: 'if (state.name === "held" && inFlight.own === 0) {',
    put: 'if (state.name === "held") {',
    by: ["Q11", "Q23"],
  },
  {
    name: "a repeated acquire extends the wait limit",
    file: queue,
    find: "{ ...waiter, pollBy: now + limits.leasePollMs }",
    put: "{ ...waiter, pollBy: now + limits.leasePollMs, until: now + event.queueMs }",
    by: ["Q8", "Q23"],
  },
  {
    name: "a waiter that stops polling stays in the queue",
    file: queue,
    find: "(now < waiter.until && now < waiter.pollBy)",
    put: "now < waiter.until",
    by: ["Q8", "Q23"],
  },
  {
    name: "a lease given to a waiter need not be used",
    file: hold,
    find: "...(waited ? { useBy: now + limits.leaseUseMs } : {}),",
    put: "",
    by: ["Q9", "Q23"],
  },
  {
    name: "a repeated ticket is a second waiter",
    file: queue,
    find: "if (position >= 0) return pollQueue(",
    put: 'if (position === 0 && state.name === "offered") return pollQueue(',
    by: ["Q5", "Q23"],
  },
  {
    name: "the newest waiter is served first",
    file: queue,
    find: "waiters: [...waiters, waiter]",
    put: "waiters: [waiter, ...waiters]",
    by: ["Q3", "Q23"],
  },
  {
    name: "a fresh instance decides before it knows what runs",
    file: step,
    find: "return { lease: { ...before, fence: before.fence + 1 }, reply: doneReply };",
    put: 'return stepLease({ ...before, fence: before.fence + 1 }, { type: "tick" }, now, inFlight);',
    by: ["Q18", "Q11", "Q24"],
  },
  {
    name: "a fresh instance does not raise the fence",
    file: step,
    find: "return { lease: { ...before, fence: before.fence + 1 }, reply: doneReply };",
    put: "return { lease: before, reply: doneReply };",
    by: ["Q19", "Q24"],
  },
  {
    name: "a holder that released by force is reported as having lost the lease",
    file: end,
    find: 'loseLease(lease, "forced", now, "released")',
    put: 'loseLease(lease, "forced", now)',
    by: ["Q13", "Q23"],
  },
  {
    name: "an unconfirmed drain lasts for ever",
    file: step,
    find: "state: { ...state, replace: true, until }",
    put: "state: { ...state, until }",
    by: ["Q17", "Q20", "Q24"],
  },
  {
    name: "an overdue drain is not rechecked",
    file: step,
    find: "const until = now + limits.leaseDrainCheckMs;",
    put: "const { until } = state;",
    by: ["Q17", "Q23"],
  },
  {
    name: "the list of ended leases has no bound",
    file: end,
    find: "ended: ended.slice(-limits.leaseEndedMax)",
    put: "ended",
    by: ["Q6"],
  },
  {
    name: "one waiter more than the limit is accepted",
    file: refusals,
    find: "waiters.length >= limits.leaseWaitersMax",
    put: "waiters.length > limits.leaseWaitersMax",
    by: ["Q4"],
  },
  {
    name: "callers without a lease overtake the waiters",
    file: check,
    find: 'state.name === "free" && waiters.length === 0 ?',
    put: 'state.name === "free" ?',
    by: ["Q18", "Q23"],
  },
  {
    name: "any token passes the lease check",
    file: check,
    find: "if (token !== undefined) {",
    put: 'if (token !== undefined) {\n    if (token !== "") return undefined;',
    by: ["Q6", "Q15", "Q23"],
  },
  {
    name: "a drain has no deadline",
    file: deadline,
    find: 'if (state.name === "draining")',
    put: 'if (state.name === "draining" && state.replace)',
    by: ["Q20", "Q24"],
  },
  {
    name: "the view shows the tickets",
    file: view,
    find: "({ holder, since }) => ({ holder,",
    put: "({ ticket, since }) => ({ holder: ticket,",
    by: ["Q21"],
  },
  {
    name: "the agent takes calls below its fence",
    file: agent,
    find: "if (call.fence < agent.fence) return undefined;\n  return { ...agent, fence: call.fence,",
    put: "return { ...agent,",
    by: ["Q24"],
  },
  {
    name: "the fence of the agent goes down",
    file: agent,
    find: "if (call.fence < agent.fence) return undefined;\n",
    put: "if (call.fence > 1e9) return undefined;\n",
    by: ["Q24"],
  },
  {
    name: "the agent ignores the handshake of an instance",
    file: agent,
    find: "fence: Math.max(agent.fence, fence)",
    put: "fence: fence < 0 ? fence : agent.fence",
    by: ["Q24"],
  },
  {
    name: "the agent confirms a drain while work still runs",
    file: agent,
    find: "fence >= agent.drain",
    put: "fence >= 0",
    by: ["Q24"],
  },
  {
    name: "limits are measured before the change",
    file: patch,
    find: "exceedsLimitError(map);",
    put: "exceedsLimitError({ ...now.map });",
    by: ["N5", "N1"],
  },
  {
    name: "a change modifies the old map",
    file: patch,
    find: "const map: Record<string, string> = { ...now.map };",
    put: "const map = now.map as Record<string, string>;",
    by: ["N6", "N10"],
  },
  {
    name: "a change of nothing raises the version",
    file: patch,
    find: "next: same ? now : {",
    put: "next: same && now.version < 0 ? now : {",
    by: ["N2", "N1"],
  },
  {
    name: "the condition is not checked",
    file: patch,
    find: "if (ifMatch !== undefined && ifMatch !== now.version) {",
    put: "if (ifMatch !== undefined && ifMatch < 0) {",
    by: ["N12", "N20", "N1"],
  },
  {
    name: "a patch keeps the empty string",
    file: patch,
    find: 'if (value === null || value === "") delete',
    put: "if (value === null) delete",
    by: ["N1"],
  },
  {
    name: "removed keys are not reported",
    file: patch,
    find: "}, set, removed };",
    put: "}, set, removed: [] };",
    by: ["N16"],
  },
  {
    name: "letters are counted instead of bytes",
    file: patch,
    find: "key.length + utf8Bytes(value)",
    put: "key.length + value.length",
    by: ["N5", "N1"],
  },
  {
    name: "a replacement keeps the old keys",
    file: patch,
    find: "Object.fromEntries(kept) as",
    put: "({ ...now.map, ...Object.fromEntries(kept) }) as",
    by: ["N20", "N1"],
  },
];
