/**
 * Owns the faults that are put into calls with a key. The simulation must notice each, or the test of the one that it
 * does not meet.
 */
import type { Fault } from "./faults.ts";

const keyed = "src/objects/sandbox/idempotency/idempotent-call.ts";
const answer = "src/objects/sandbox/idempotency/response-outcome.ts";
const rows = "src/objects/sandbox/idempotency/key-rows.ts";

export const keyFaults: readonly Fault[] = [
  {
    name: "nobody looks at the key again behind the gate",
    file: keyed,
    find: "const known = find(actor, key, hash);\n    if",
    put: "const known = row;\n    if",
    by: ["K13"],
  },
  {
    name: "two send a call with a key again at once",
    file: keyed,
    find: "if (keyedUnderWay.has(key)) continue;",
    put: "",
    by: ["K13"],
  },
  {
    name: "a call with a key is sent again while its refusal is not read",
    file: keyed,
    find: "return response.ok ? reply : await reply;",
    put: "return reply;",
    by: ["K13"],
  },
  {
    name: "the row of a key is written after the call was sent",
    file: keyed,
    find: "actor.keyedRows.insert(made, work.lastsMs);",
    put: "actor.host.timer(50, () => actor.keyedRows.insert(made, work.lastsMs));",
    by: ["K7"],
  },
  {
    name: "how a call ended is not written",
    file: keyed,
    find: "else if (row.outcome === undefined) actor",
    put: "else if (row.outcome !== undefined) actor",
    by: ["K7"],
  },
  {
    name: "a key is forgotten with its first answer",
    file: keyed,
    find: 'if (learnt === "not run") actor',
    put: 'if (learnt !== "not run") actor',
    by: ["K7"],
  },
  {
    name: "whoever waits for the first call of a key is not woken",
    file: keyed,
    find: "    way.resolve();\n",
    put: "",
    by: ["K7"],
  },
  {
    name: "a call that finds its key used keeps its place behind the gate",
    file: keyed,
    find: "    if (known?.id !== row?.id) {\n      passed.end();",
    put: "    if (known?.id !== row?.id) {",
    by: ["K13"],
  },
  {
    name: "a command without its caller counts no more",
    file: answer,
    find: "if (!reading.isLeft) done();",
    put: "done();",
    by: ["K7"],
  },
  {
    name: "keys are cleared while they are young",
    file: rows,
    find: "DELETE FROM keyed WHERE until <= ?",
    put: "DELETE FROM keyed WHERE until >= ?",
    by: ["K7"],
  },
];
