/** Faults in calls with an idempotency key: the simulation must notice each, or a test for what it does not reach. */
import { faultsByFile } from "./fault.ts";

export const keyFaults = faultsByFile({
  "src/objects/sandbox/idempotency/idempotent-call.ts": [
    {
      name: "the key is not looked up again after admission",
      find: "const stored = findRow(call);\n    if",
      put: "const stored = known;\n    if",
      by: ["K13"],
    },
    {
      name: "two callers send a call with a key again at once",
      find: "if (keysInFlight.has(key)) continue;",
      put: "",
      by: ["K13"],
    },
    {
      name: "a call with a key is sent again before its refusal is read",
      find: "return response.ok ? result : await result;",
      put: "return result;",
      by: ["K13"],
    },
    {
      name: "the row of a key is written after the call was sent",
      find: "actor.keyRows.insert(newRow, call.lastsMs);",
      put: "actor.host.setTimer(50, () => actor.keyRows.insert(newRow, call.lastsMs));",
      by: ["K7"],
    },
    {
      name: "the outcome of a call is not written",
      find: "else if (row.outcome === undefined) actor",
      put: "else if (row.outcome !== undefined) actor",
      by: ["K7"],
    },
    {
      name: "a key is removed with its first result",
      find: 'if (outcome === "not run") actor',
      put: 'if (outcome !== "not run") actor',
      by: ["K7"],
    },
    {
      name: "callers that wait for the first call of a key are not woken",
      find: "    finished.resolve();\n",
      put: "",
      by: ["K7"],
    },
    {
      name: "a call that finds its key used stays in flight",
      find: "    if (stored?.id !== known?.id) {\n      admitted.end();",
      put: "    if (stored?.id !== known?.id) {",
      by: ["K13"],
    },
  ],
  "src/objects/sandbox/idempotency/response-outcome.ts": [
    {
      name: "a command without its caller no longer counts",
      find: "if (!reader.hasReaderLeft) onDone();",
      put: "onDone();",
      by: ["K7"],
    },
  ],
  "src/objects/sandbox/idempotency/key-rows.ts": [
    {
      name: "keys are cleared while they are young",
      find: "DELETE FROM keyed WHERE until <= ?",
      put: "DELETE FROM keyed WHERE until >= ?",
      by: ["K7"],
    },
  ],
});
