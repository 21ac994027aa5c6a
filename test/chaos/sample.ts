/**
 * Owns a history in which nothing went wrong, and what is there after it: tests of the checks break one thing of it.
 */
import { History } from "./history.ts";
import type { Truth } from "./truth.ts";

export const box = "a-box";

export function sample(): { history: History; truth: Truth } {
  const history = new History();
  const call = { client: "one", box, beganMs: 0, endedMs: 5 };
  history.calls.push(
    { ...call, verb: "exec", outcome: "ack" },
    { ...call, verb: "exec", outcome: "refused", code: "lease_held" },
    { ...call, verb: "exec", outcome: "unknown", code: "operation_interrupted" },
  );
  history.metadata.push(
    { box, name: "key", value: "1", outcome: "ack" },
    { box, name: "key", value: "2", outcome: "ack" },
    { box, name: "key", value: "3", outcome: "unknown" },
  );
  history.versions.push({ box, version: 2 }, { box, version: 3, ifMatch: 2 });
  history.files.push(
    { box, name: "/workspace/f/one", value: "hash", outcome: "ack" },
    { box, name: "/workspace/f/two", value: "other", outcome: "refused" },
  );
  history.runs.push(
    { box, marker: "acked", outcome: "ack" },
    { box, marker: "refused", outcome: "refused" },
    { box, marker: "cut", outcome: "unknown" },
  );
  history.grants.push(
    { box, holder: "ann", fence: 3, askedMs: 0, answeredMs: 1 },
    { box, holder: "bob", fence: 5, askedMs: 2, answeredMs: 3 },
  );
  history.made.push(
    { id: box, askedMs: 0, answeredMs: 1 },
    { id: "gone", scope: "repo", askedMs: 0, answeredMs: 1 },
    { id: "current", scope: "repo", askedMs: 4, answeredMs: 5 },
  );
  history.ended.push({ id: "gone", askedMs: 2, ackedMs: 3 });
  history.saved.push(
    { box, id: "kept" },
    { box, id: "cut", drop: "asked" },
    { box, id: "dropped", drop: "acked" },
  );
  history.reads.push({ client: "one", what: "a file", box, allowed: ["1", "2"], got: "2" });
  history.streams.push({ box, what: "a log", lines: [0, 1, 2], whole: 3 });
  const metadata = { key: "2" };
  const seen = { state: "running", version: 4, fence: 6 };
  return {
    history,
    truth: {
      sandboxes: {
        [box]: { ...seen, metadata },
        gone: { ...seen, state: "destroyed", metadata: {}, version: 0, fence: 0 },
        current: { ...seen, state: "paused", metadata: {} },
      },
      kept: {
        [box]: {
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
        { id: box, state: "running", metadata: { ...metadata }, scope: "" },
        { id: "current", state: "paused", metadata: {}, scope: "repo" },
      ],
      unsettled: [],
      strays: [],
    },
  };
}
