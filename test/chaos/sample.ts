/** A history in which nothing went wrong and its final state; tests of the checks break one detail each. */

import type { FinalState } from "./final-state.ts";
import { History } from "./history.ts";

export const sampleId = "sandbox-a";

export function sample(): { history: History; finalState: FinalState } {
  const history = new History();
  const call = { client: "one", sandboxId: sampleId, startedMs: 0, endedMs: 5 };
  history.calls.push(
    { ...call, verb: "exec", outcome: "ack" },
    { ...call, verb: "exec", outcome: "refused", code: "lease_held" },
    { ...call, verb: "exec", outcome: "unknown", code: "operation_interrupted" },
  );
  history.metadata.push(
    { sandboxId: sampleId, name: "key", value: "1", outcome: "ack" },
    { sandboxId: sampleId, name: "key", value: "2", outcome: "ack" },
    { sandboxId: sampleId, name: "key", value: "3", outcome: "unknown" },
  );
  history.versions.push(
    { sandboxId: sampleId, version: 2 },
    { sandboxId: sampleId, version: 3, ifMatch: 2 },
  );
  history.files.push(
    { sandboxId: sampleId, name: "/workspace/f/one", value: "hash", outcome: "ack" },
    { sandboxId: sampleId, name: "/workspace/f/two", value: "other", outcome: "refused" },
  );
  history.runs.push(
    { sandboxId: sampleId, marker: "acked", outcome: "ack" },
    { sandboxId: sampleId, marker: "refused", outcome: "refused" },
    { sandboxId: sampleId, marker: "cut", outcome: "unknown" },
  );
  history.grants.push(
    { sandboxId: sampleId, holder: "ann", fence: 3, calledMs: 0, returnedMs: 1 },
    { sandboxId: sampleId, holder: "bob", fence: 5, calledMs: 2, returnedMs: 3 },
  );
  history.created.push(
    { id: sampleId, calledMs: 0, returnedMs: 1 },
    { id: "gone", scope: "repo", calledMs: 0, returnedMs: 1 },
    { id: "current", scope: "repo", calledMs: 4, returnedMs: 5 },
  );
  history.destroyed.push({ id: "gone", calledMs: 2, ackedMs: 3 });
  history.saved.push(
    { sandboxId: sampleId, id: "kept" },
    { sandboxId: sampleId, id: "cut", drop: "requested" },
    { sandboxId: sampleId, id: "dropped", drop: "acked" },
  );
  history.reads.push({
    client: "one",
    what: "a file",
    sandboxId: sampleId,
    allowed: ["1", "2"],
    got: "2",
  });
  history.streams.push({ sandboxId: sampleId, what: "a log", lines: [0, 1, 2], lineCount: 3 });
  const metadata = { key: "2" };
  const seen = { state: "running", version: 4, fence: 6 };
  return {
    history,
    finalState: {
      sandboxes: {
        [sampleId]: { ...seen, metadata },
        gone: { ...seen, state: "destroyed", metadata: {}, version: 0, fence: 0 },
        current: { ...seen, state: "paused", metadata: {} },
      },
      contents: {
        [sampleId]: {
          ran: ["acked", "cut"],
          holds: [
            ...["L 3 b x1", "L 3 b x2", "L 3 e x1", "U y b", "U y e"],
            ...["U z b", "L 5 b x3", "L 5 e x3"],
          ],
          files: { "/workspace/f/one": "hash" },
          checkpoints: ["kept", "cut"],
        },
      },
      listed: [
        { id: sampleId, state: "running", metadata: { ...metadata }, scope: "" },
        { id: "current", state: "paused", metadata: {}, scope: "repo" },
      ],
      unsettled: [],
      leftovers: [],
    },
  };
}
