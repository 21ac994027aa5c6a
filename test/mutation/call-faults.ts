/** Faults in the Directory, keys, handles, tenants, logs and the SDK's retries, with the rules that must notice them. */
import { faultsByFile } from "./fault.ts";

export const callFaults = faultsByFile({
  "src/objects/directory/actor.ts": [
    {
      name: "a scope is written after other callers have read it",
      find: "if (scope !== undefined) setScope(this.#host, scope, spec.id);",
      put: "if (scope !== undefined) this.#host.setTimer(1, () => setScope(this.#host, scope, spec.id));",
      by: ["D1"],
    },
  ],
  "src/objects/directory/reports.ts": [
    {
      name: "an older report replaces a newer one",
      find: "revision <= known.revision) {",
      put: "revision === known.revision) {",
      by: ["D10"],
    },
  ],
  "src/objects/directory/sandbox-tasks.ts": [
    {
      name: "an unreachable sandbox counts as destroyed",
      find: "const report = await this.#withTimeout(this.#sandboxOf(id).report());",
      put: "const report = await this.#withTimeout(this.#sandboxOf(id).report()).catch(() => undefined);",
      by: ["D18", "D20"],
    },
    {
      name: "a hanging sandbox keeps the others from their turn",
      find: "for (const id of dueSandboxes(this.#host, this.#host.clock())) void this.#create(id);",
      put: "for (const id of dueSandboxes(this.#host, this.#host.clock()).slice(0, 1)) void this.#create(id);",
      by: ["D19"],
    },
  ],
  "src/core/directory/find.ts": [
    {
      name: "a key of a create matches any call",
      find: "if (sameKey.hash !== call.hash) return",
      put: 'if (call.hash === "") return',
      by: ["D4"],
    },
  ],
  "src/objects/sandbox/idempotency/idempotent-call.ts": [
    {
      name: "a key of a command matches any call",
      find: "row === undefined || row.hash === hash) return row;",
      put: 'row === undefined || hash !== "") return row;',
      by: ["Y44"],
    },
  ],
  "src/objects/sandbox/agent/agent-client.ts": [
    {
      name: "a command whose channel broke is sent again",
      find: 'if (result === undefined) throw await this.interrupted(agent, "unknown");',
      put: "if (result === undefined) return this.#sendOnce(agent, request, fence);",
      by: ["U16"],
    },
  ],
  "src/objects/sandbox/agent/agent-channel.ts": [
    {
      name: "a channel is used for any incarnation",
      find: "if (this.#open?.incarnation === agent.incarnation)",
      put: "if (this.#open !== undefined)",
      by: ["U17"],
    },
  ],
  "src/objects/sandbox/agent/handles.ts": [
    {
      name: "a handle of an earlier incarnation is valid",
      find: "if (!isOfOtherIncarnation(id, actor.runningAgent?.incarnation)) return;",
      put: 'if (id !== "") return;',
      by: ["Y50"],
    },
  ],
  "src/objects/sandbox/dispatch/rights.ts": [
    {
      name: "a foreign sandbox is forbidden, not unknown",
      find: "!== caller.tenant) throw unknownSandbox();",
      put: '!== caller.tenant) throw new BerthError("forbidden", "It is somebody else\'s.");',
      by: ["W3"],
    },
    {
      name: "a foreign sandbox is accessible",
      find: "facts.sandbox.spec.tenant !== caller.tenant) throw",
      put: 'caller.tenant === "") throw',
      by: ["W3"],
    },
  ],
  "src/client/http/retry.ts": [
    {
      name: "a call that may have run is sent again",
      find: "return isRepeatable && error.code",
      put: "return error.code",
      by: ["SD4"],
    },
    {
      name: "a call refused because of a holder is retried",
      find: '"too_many", "body_timeout"]',
      put: '"too_many", "body_timeout", "lease_held"]',
      by: ["SD3"],
    },
  ],
  "container/agent/processes/ring.ts": [
    {
      name: "a log begins one byte late where it wraps",
      find: "Math.min(length, this.bytes - position)",
      put: "Math.min(length, this.bytes - position + 1)",
      by: ["P8"],
    },
  ],
  "container/agent/processes/runs.ts": [
    {
      name: "a cursor at the border of two streams belongs to the previous one",
      find: "return this.#last((run) => this.#cursorOf(run) <= cursor);",
      put: "return this.#last((run) => this.#cursorOf(run) < cursor);",
      by: ["P8"],
    },
    {
      name: "an offset that was just dropped counts as present",
      find: "if (offset < this.offsetAt(this.start, stream)) return undefined;",
      put: "if (offset + 1 < this.offsetAt(this.start, stream)) return undefined;",
      by: ["P8"],
    },
  ],
  "container/agent/server/gated-work.ts": [
    {
      name: "the agent takes work below its fence",
      find: "if (fence < this.#highest) {",
      put: "if (fence < 0) {",
      by: ["X50"],
    },
    {
      name: "a call does not raise the agent's fence",
      find: "    this.#highest = fence;\n",
      put: "",
      by: ["X50"],
    },
    {
      name: "a late raise lowers the agent's fence",
      find: "Math.max(this.#highest, fence)",
      put: "fence",
      by: ["X50"],
    },
    {
      name: "only a drain raises the agent's fence",
      find: "gated.fence.raise(fence);",
      put: "if (drain) gated.fence.raise(fence);",
      by: ["X50"],
    },
    {
      name: "the agent confirms a drain at once",
      find: "const left = await gated.countBelow(fence, waitMs);",
      put: "const left = 0 * waitMs;",
      by: ["X50"],
    },
    {
      name: "a drain interrupts nothing",
      find: "if (drain) gated",
      put: "if (drain && fence < 0) gated",
      by: ["X50"],
    },
    {
      name: "a drain interrupts the work of the new fence too",
      find: "call.fence < fence",
      put: "call.fence <= fence",
      by: ["X50"],
    },
  ],
});
