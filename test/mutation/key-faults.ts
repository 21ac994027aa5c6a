/**
 * Faults in calls with an idempotency key. The simulation must notice each, or the test for a case that it does not
 * reach.
 */
import type { Fault } from "./faults.ts";

const idempotentCall = "src/objects/sandbox/idempotency/idempotent-call.ts";
const responseOutcome = "src/objects/sandbox/idempotency/response-outcome.ts";
const keyRows = "src/objects/sandbox/idempotency/key-rows.ts";

export const keyFaults: readonly Fault[] = [
  {
    name: "the key is not looked up again after admission",
    file: idempotentCall,
    find: "const stored = findRow(actor, key, hash);\n    if",
    put: "const stored = row;\n    if",
    by: ["K13"],
  },
  {
    name: "two callers send a call with a key again at once",
    file: idempotentCall,
    find: "if (keysInFlight.has(key)) continue;",
    put: "",
    by: ["K13"],
  },
  {
    name: "a call with a key is sent again before its refusal is read",
    file: idempotentCall,
    find: "return response.ok ? result : await result;",
    put: "return result;",
    by: ["K13"],
  },
  {
    name: "the row of a key is written after the call was sent",
    file: idempotentCall,
    find: "actor.keyRows.insert(newRow, call.lastsMs);",
    put: "actor.host.setTimer(50, () => actor.keyRows.insert(newRow, call.lastsMs));",
    by: ["K7"],
  },
  {
    name: "the outcome of a call is not written",
    file: idempotentCall,
    find: "else if (row.outcome === undefined) actor",
    put: "else if (row.outcome !== undefined) actor",
    by: ["K7"],
  },
  {
    name: "a key is removed with its first result",
    file: idempotentCall,
    find: 'if (outcome === "not run") actor',
    put: 'if (outcome !== "not run") actor',
    by: ["K7"],
  },
  {
    name: "callers that wait for the first call of a key are not woken",
    file: idempotentCall,
    find: "    finished.resolve();\n",
    put: "",
    by: ["K7"],
  },
  {
    name: "a call that finds its key used stays in flight",
    file: idempotentCall,
    find: "    if (stored?.id !== row?.id) {\n      admitted.end();",
    put: "    if (stored?.id !== row?.id) {",
    by: ["K13"],
  },
  {
    name: "a command without its caller no longer counts",
    file: responseOutcome,
    find: "if (!reader.hasReaderLeft) onDone();",
    put: "onDone();",
    by: ["K7"],
  },
  {
    name: "keys are cleared while they are young",
    file: keyRows,
    find: "DELETE FROM keyed WHERE until <= ?",
    put: "DELETE FROM keyed WHERE until >= ?",
    by: ["K7"],
  },
];
