/** Faults in leases, metadata and the agent of the model, with the rules that must notice them. */
import { faultsByFile } from "./fault.ts";

export const leaseFaults = faultsByFile({
  "src/core/lease/step.ts": [
    {
      name: "an expired lease is not drained",
      find: 'return loseLease(next, "expired", now);',
      put: 'return endLease(next, "expired", now);',
      by: ["Q12", "Q23"],
    },
    {
      name: "the turn is offered while calls of others run",
      find: "|| inFlight.others > 0)\n    return lease;",
      put: ")\n    return lease;",
      by: ["Q18", "Q23", "Q24"],
    },
    {
      name: "a dead waiter keeps its turn for ever",
      find: 'if (state.name === "offered" && now >= state.until) {',
      put: 'if (state.name === "offered" && now < 0) {',
      by: ["Q7", "Q20", "Q24"],
    },
    {
      name: "a running call does not keep its lease alive",
      find: 'if (state.name === "held" && inFlight.own === 0) {',
      put: 'if (state.name === "held") {',
      by: ["Q11", "Q23"],
    },
    {
      name: "a fresh instance decides before it knows what runs",
      find: "return { lease: { ...before, fence: before.fence + 1 }, reply: doneReply };",
      put: 'return stepLease({ ...before, fence: before.fence + 1 }, { type: "tick" }, now, inFlight);',
      by: ["Q18", "Q11", "Q24"],
    },
    {
      name: "a fresh instance does not raise the fence",
      find: "return { lease: { ...before, fence: before.fence + 1 }, reply: doneReply };",
      put: "return { lease: before, reply: doneReply };",
      by: ["Q19", "Q24"],
    },
    {
      name: "an unconfirmed drain lasts for ever",
      find: "state: { ...state, replace: true, until }",
      put: "state: { ...state, until }",
      by: ["Q17", "Q20", "Q24"],
    },
    {
      name: "an overdue drain is not rechecked",
      find: "const until = now + limits.leaseDrainCheckMs;",
      put: "const { until } = state;",
      by: ["Q17", "Q23"],
    },
    {
      name: "a drain has no deadline",
      find: 'if (state.name === "draining")',
      put: 'if (state.name === "draining" && state.replace)',
      by: ["Q20", "Q24"],
    },
  ],
  "src/core/lease/queue.ts": [
    {
      name: "a newcomer overtakes the waiters",
      find: 'state.name === "free" && waiters.length === 0 && inFlight.others === 0',
      put: 'state.name === "free" && inFlight.others === 0',
      by: ["Q2"],
    },
    {
      name: "the lease is granted while calls of others run",
      find: 'state.name === "free" && waiters.length === 0 && inFlight.others === 0',
      put: 'state.name === "free" && waiters.length === 0',
      by: ["Q18", "Q23", "Q24"],
    },
    {
      name: "a repeated acquire extends the wait limit",
      find: "{ ...waiter, pollBy: now + limits.leasePollMs }",
      put: "{ ...waiter, pollBy: now + limits.leasePollMs, until: now + event.queueMs }",
      by: ["Q8", "Q23"],
    },
    {
      name: "a waiter that stops polling stays in the queue",
      find: "(now < waiter.until && now < waiter.pollBy)",
      put: "now < waiter.until",
      by: ["Q8", "Q23"],
    },
    {
      name: "a repeated ticket is a second waiter",
      find: "if (position >= 0) return pollQueue(",
      put: 'if (position === 0 && state.name === "offered") return pollQueue(',
      by: ["Q5", "Q23"],
    },
    {
      name: "the newest waiter is served first",
      find: "waiters: [...waiters, waiter]",
      put: "waiters: [waiter, ...waiters]",
      by: ["Q3", "Q23"],
    },
  ],
  "src/core/lease/end.ts": [
    {
      name: "a release ignores running calls",
      find: 'if (inFlight.own === 0) {\n    return { lease: endLease(lease, "released", now)',
      put: 'if (inFlight.own >= 0) {\n    return { lease: endLease(lease, "released", now)',
      by: ["Q14", "Q23"],
    },
    {
      name: "the fence starts again at the end of the sandbox",
      find: "waiters: [], fence: held.fence + 1 }",
      put: "waiters: [], fence: 0 }",
      by: ["Q19"],
    },
    {
      name: "a loss does not raise the fence",
      find: "const fence = lease.fence + 1;\n  return {\n    ...endLease(",
      put: "const fence = lease.fence;\n  return {\n    ...endLease(",
      by: ["Q15", "Q23", "Q24"],
    },
    {
      name: "a confirmation of an earlier fence ends the drain",
      find: '"draining" || fence < lease.state.fence)',
      put: '"draining")',
      by: ["Q16", "Q23", "Q24"],
    },
    {
      name: "a holder that released by force is reported as having lost the lease",
      find: 'loseLease(lease, "forced", now, "released")',
      put: 'loseLease(lease, "forced", now)',
      by: ["Q13", "Q23"],
    },
    {
      name: "the list of ended leases has no bound",
      find: "ended: ended.slice(-limits.leaseEndedMax)",
      put: "ended",
      by: ["Q6"],
    },
  ],
  "src/core/lease/hold.ts": [
    {
      name: "a lease that has ended can be renewed",
      find: "    return refuseStep(lease, leaseLostFor(lease, token));\n  }\n  return { lease: extendLease(",
      put: "    return { lease, reply: { granted: true } };\n  }\n  return { lease: extendLease(",
      by: ["Q10", "Q23"],
    },
    {
      name: "a grant does not raise the fence",
      find: 'const fence = lease.fence + 1;\n  return {\n    ...lease,\n    fence,\n    state: {\n      name: "held"',
      put: 'const fence = lease.fence;\n  return {\n    ...lease,\n    fence,\n    state: {\n      name: "held"',
      by: ["Q19", "Q23"],
    },
    {
      name: "a use shortens the lease",
      find: "Math.max(expiresAt, until)",
      put: "Math.min(expiresAt, until)",
      by: ["Q11", "Q23"],
    },
    {
      name: "a clock that steps backwards shortens the lease",
      find: "Math.max(expiresAt, until)",
      put: "until",
      by: ["Q11"],
    },
    {
      name: "a lease given to a waiter need not be used",
      find: "...(waited ? { useBy: now + limits.leaseUseMs } : {}),",
      put: "",
      by: ["Q9", "Q23"],
    },
  ],
  "src/core/lease/refusals.ts": [
    {
      name: "one waiter more than the limit is accepted",
      find: "waiters.length >= limits.leaseWaitersMax",
      put: "waiters.length > limits.leaseWaitersMax",
      by: ["Q4"],
    },
    {
      name: "callers without a lease overtake the waiters",
      find: 'state.name === "free" && waiters.length === 0 ?',
      put: 'state.name === "free" ?',
      by: ["Q18", "Q23"],
    },
    {
      name: "any token passes the lease check",
      find: "if (token !== undefined) {",
      put: 'if (token !== undefined) {\n    if (token !== "") return undefined;',
      by: ["Q6", "Q15", "Q23"],
    },
  ],
  "src/core/lease/view.ts": [
    {
      name: "the view shows the tickets",
      find: "({ holder, since }) => ({ holder,",
      put: "({ ticket, since }) => ({ holder: ticket,",
      by: ["Q21"],
    },
  ],
  "test/model-check/agent.ts": [
    {
      name: "the agent takes calls below its fence",
      find: "if (call.fence < agent.fence) return undefined;\n  return { ...agent, fence: call.fence,",
      put: "return { ...agent,",
      by: ["Q24"],
    },
    {
      name: "the fence of the agent goes down",
      find: "if (call.fence < agent.fence) return undefined;\n",
      put: "if (call.fence > 1e9) return undefined;\n",
      by: ["Q24"],
    },
    {
      name: "the agent ignores the handshake of an instance",
      find: "fence: Math.max(agent.fence, fence)",
      put: "fence: fence < 0 ? fence : agent.fence",
      by: ["Q24"],
    },
    {
      name: "the agent confirms a drain while work still runs",
      find: "fence >= agent.drain",
      put: "fence >= 0",
      by: ["Q24"],
    },
  ],
  "src/core/metadata/patch.ts": [
    {
      name: "limits are measured before the change",
      find: "exceedsLimitError(map);",
      put: "exceedsLimitError({ ...now.map });",
      by: ["N5", "N1"],
    },
    {
      name: "a change modifies the old map",
      find: "const map: Record<string, string> = { ...now.map };",
      put: "const map = now.map as Record<string, string>;",
      by: ["N6", "N10"],
    },
    {
      name: "a change of nothing raises the version",
      find: "next: same ? now : {",
      put: "next: same && now.version < 0 ? now : {",
      by: ["N2", "N1"],
    },
    {
      name: "the condition is not checked",
      find: "if (ifMatch !== undefined && ifMatch !== now.version) {",
      put: "if (ifMatch !== undefined && ifMatch < 0) {",
      by: ["N12", "N20", "N1"],
    },
    {
      name: "a patch keeps the empty string",
      find: 'if (value === null || value === "") delete',
      put: "if (value === null) delete",
      by: ["N1"],
    },
    {
      name: "removed keys are not reported",
      find: "}, set, removed };",
      put: "}, set, removed: [] };",
      by: ["N16"],
    },
    {
      name: "letters are counted instead of bytes",
      find: "key.length + utf8Bytes(value)",
      put: "key.length + value.length",
      by: ["N5", "N1"],
    },
    {
      name: "a replacement keeps the old keys",
      find: "Object.fromEntries(kept) as",
      put: "({ ...now.map, ...Object.fromEntries(kept) }) as",
      by: ["N20", "N1"],
    },
  ],
});
