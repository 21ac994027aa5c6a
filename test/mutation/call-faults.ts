/**
 * Faults in the parts around a sandbox: the Directory, keys, handles, tenants, logs and the SDK's retries, with the
 * rules that must notice them.
 */
import type { Fault } from "./faults.ts";

const directory = "src/objects/directory/actor.ts";
const sandboxTasks = "src/objects/directory/sandbox-tasks.ts";
const reports = "src/objects/directory/reports.ts";
const find = "src/core/directory/find.ts";
const rights = "src/objects/sandbox/dispatch/rights.ts";
const handles = "src/objects/sandbox/agent/handles.ts";
const idempotentCall = "src/objects/sandbox/idempotency/idempotent-call.ts";
const agentClient = "src/objects/sandbox/agent/agent-client.ts";
const agentChannel = "src/objects/sandbox/agent/agent-channel.ts";
const retry = "src/client/http/retry.ts";
const ring = "container/agent/processes/ring.ts";
const runs = "container/agent/processes/runs.ts";
const fence = "container/agent/server/fence.ts";
const fenceCall = "container/agent/server/fence-call.ts";
const gated = "container/agent/server/gated-work.ts";

export const callFaults: readonly Fault[] = [
  {
    name: "a scope is written after other callers have read it",
    file: directory,
    find: "if (scope !== undefined) setScope(this.#host, scope, spec.id);",
    put: "if (scope !== undefined) this.#host.setTimer(1, () => setScope(this.#host, scope, spec.id));",
    by: ["D1"],
  },
  {
    name: "an older report replaces a newer one",
    file: reports,
    find: "revision <= known.revision) {",
    put: "revision === known.revision) {",
    by: ["D10"],
  },
  {
    name: "an unreachable sandbox counts as destroyed",
    file: sandboxTasks,
    find: "const report = await this.#withTimeout(this.#sandboxOf(id).report(), limits.directoryRequestMs);",
    put: "const report = await this.#withTimeout(this.#sandboxOf(id).report(), limits.directoryRequestMs).catch(() => undefined);",
    by: ["D18", "D20"],
  },
  {
    name: "a hanging sandbox keeps the others from their turn",
    file: sandboxTasks,
    find: "for (const id of dueSandboxes(this.#host, this.#host.clock())) void this.#create(id);",
    put: "for (const id of dueSandboxes(this.#host, this.#host.clock()).slice(0, 1)) void this.#create(id);",
    by: ["D19"],
  },
  {
    name: "a key of a create matches any call",
    file: find,
    find: "if (sameKey.hash !== call.hash) return",
    put: 'if (call.hash === "") return',
    by: ["D4"],
  },
  {
    name: "a key of a command matches any call",
    file: idempotentCall,
    find: "row === undefined || row.hash === hash) return row;",
    put: 'row === undefined || hash !== "") return row;',
    by: ["Y44"],
  },
  {
    name: "a command whose channel broke is sent again",
    file: agentClient,
    find: 'if (result === undefined) throw await this.interrupted(agent, "unknown");',
    put: "if (result === undefined) return this.#sendOnce(agent, request, fence);",
    by: ["U16"],
  },
  {
    name: "a channel is used for any incarnation",
    file: agentChannel,
    find: "if (this.#open?.incarnation === agent.incarnation)",
    put: "if (this.#open !== undefined)",
    by: ["U17"],
  },
  {
    name: "a handle of an earlier incarnation is valid",
    file: handles,
    find: "if (!isOfOtherIncarnation(id, runningAgent(actor)?.incarnation)) return;",
    put: 'if (id !== "") return;',
    by: ["Y50"],
  },
  {
    name: "a foreign sandbox is forbidden, not unknown",
    file: rights,
    find: "!== caller.tenant) throw unknownSandbox();",
    put: '!== caller.tenant) throw new BerthError("forbidden", "It is somebody else\'s.");',
    by: ["W3"],
  },
  {
    name: "a foreign sandbox is accessible",
    file: rights,
    find: "facts.sandbox.spec.tenant !== caller.tenant) throw",
    put: 'caller.tenant === "") throw',
    by: ["W3"],
  },
  {
    name: "a call that may have run is sent again",
    file: retry,
    find: "return isRepeatable && error.code",
    put: "return error.code",
    by: ["SD4"],
  },
  {
    name: "a call refused because of a holder is retried",
    file: retry,
    find: '"too_many", "body_timeout"]',
    put: '"too_many", "body_timeout", "lease_held"]',
    by: ["SD3"],
  },
  {
    name: "a log begins one byte late where it wraps",
    file: ring,
    find: "Math.min(length, this.bytes - position)",
    put: "Math.min(length, this.bytes - position + 1)",
    by: ["P8"],
  },
  {
    name: "a cursor at the border of two streams belongs to the previous one",
    file: runs,
    find: "return this.#last((run) => this.#cursorOf(run) <= cursor);",
    put: "return this.#last((run) => this.#cursorOf(run) < cursor);",
    by: ["P8"],
  },
  {
    name: "an offset that was just dropped counts as present",
    file: runs,
    find: "if (offset < this.offsetAt(this.start, stream)) return undefined;",
    put: "if (offset + 1 < this.offsetAt(this.start, stream)) return undefined;",
    by: ["P8"],
  },
  {
    name: "the agent takes work below its fence",
    file: fence,
    find: "if (fence < this.#highest) {",
    put: "if (fence < 0) {",
    by: ["X50"],
  },
  {
    name: "a call does not raise the agent's fence",
    file: fence,
    find: "    this.#highest = fence;\n",
    put: "",
    by: ["X50"],
  },
  {
    name: "a late raise lowers the agent's fence",
    file: fence,
    find: "Math.max(this.#highest, fence)",
    put: "fence",
    by: ["X50"],
  },
  {
    name: "only a drain raises the agent's fence",
    file: fenceCall,
    find: "gated.fence.raise(fence);",
    put: "if (drain) gated.fence.raise(fence);",
    by: ["X50"],
  },
  {
    name: "the agent confirms a drain at once",
    file: fenceCall,
    find: "const left = await gated.countBelow(fence, waitMs);",
    put: "const left = 0 * waitMs;",
    by: ["X50"],
  },
  {
    name: "a drain interrupts nothing",
    file: fenceCall,
    find: "if (drain) gated",
    put: "if (drain && fence < 0) gated",
    by: ["X50"],
  },
  {
    name: "a drain interrupts the work of the new fence too",
    file: gated,
    find: "call.fence < fence",
    put: "call.fence <= fence",
    by: ["X50"],
  },
];
