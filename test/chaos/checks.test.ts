import { describe, expect, it } from "vitest";
import { type CheckName, findingsOf } from "./checks.ts";
import type { FinalState } from "./final-state.ts";
import type { History } from "./history.ts";
import { sample, sampleId } from "./sample.ts";

type Break = (history: History, finalState: FinalState) => void;

/** The names of the checks that find something. */
function findingsAfter(breaks: Break): CheckName[] {
  const { history, finalState } = sample();
  breaks(history, finalState);
  const found = Object.entries(findingsOf(history, finalState)).filter(
    ([, problems]) => problems.length > 0,
  );
  return found.map(([name]) => name as CheckName);
}

function contentsOf({ contents }: FinalState) {
  const there = contents[sampleId];
  if (there === undefined) throw new Error("the sample has the sandbox");
  return there;
}

function seen({ sandboxes }: FinalState) {
  const there = sandboxes[sampleId];
  if (there === undefined || there === "gone") throw new Error("the sample has the sandbox");
  return there;
}

function item<Item>(items: Item[], index: number): Item {
  const found = items[index];
  if (found === undefined) throw new Error(`the sample has no item ${index}`);
  return found;
}

describe("the checks of a chaos run", () => {
  it("[CA1] find nothing in a history in which nothing went wrong, whatever an interrupted call did", () => {
    expect(findingsAfter(() => {})).toEqual([]);
    expect(findingsAfter((_, finalState) => contentsOf(finalState).ran.pop())).toEqual([]);
    expect(findingsAfter((_, finalState) => contentsOf(finalState).checkpoints.pop())).toEqual([]);
    expect(
      findingsAfter((_, finalState) => {
        seen(finalState).metadata.key = "3";
        item(finalState.listed, 0).metadata.key = "3";
      }),
    ).toEqual([]);
  });

  it.each<[string, Break]>([
    [
      "an acknowledged value is lost",
      (_, finalState) => {
        seen(finalState).metadata.key = "1";
        item(finalState.listed, 0).metadata.key = "1";
      },
    ],
    [
      "a key is gone",
      (_, finalState) => {
        delete seen(finalState).metadata.key;
        delete item(finalState.listed, 0).metadata.key;
      },
    ],
  ])("[CA2] lost metadata is found: %s", (_, breaks) => {
    expect(findingsAfter(breaks)).toEqual(["metadata lost"]);
  });

  it.each<[string, Break]>([
    [
      "two changes with one number",
      ({ versions }) => versions.push({ sandboxId: sampleId, version: 3 }),
    ],
    [
      "a condition that did not hold",
      ({ versions }) => versions.push({ sandboxId: sampleId, version: 4, ifMatch: 2 }),
    ],
    [
      "a number that was undone",
      (_, finalState) => Object.assign(seen(finalState), { version: 2 }),
    ],
  ])("[CA3] wrong versions are found: %s", (_, breaks) => {
    expect(findingsAfter(breaks)).toEqual(["versions wrong"]);
  });

  it.each<[string, Break]>([
    [
      "other bytes",
      (_, finalState) => Object.assign(contentsOf(finalState).files, { "/workspace/f/one": "bad" }),
    ],
    ["no file", (_, finalState) => Object.assign(contentsOf(finalState), { files: {} })],
    [
      "a file whose write was refused",
      (_, finalState) =>
        Object.assign(contentsOf(finalState).files, { "/workspace/f/two": "other" }),
    ],
  ])("[CA4] lost files are found: %s", (_, breaks) => {
    expect(findingsAfter(breaks)).toEqual(["files lost"]);
  });

  it.each<[string, CheckName, Break]>([
    [
      "one that is unknown",
      "sandboxes lost",
      (_, finalState) => {
        finalState.sandboxes[sampleId] = "gone";
        finalState.contents = {};
        finalState.listed.shift();
      },
    ],
    [
      "one that nobody ended",
      "sandboxes lost",
      (_, finalState) => {
        seen(finalState).state = "destroyed";
        finalState.listed.shift();
      },
    ],
    [
      "one that exists after its end",
      "sandboxes lost",
      (_, finalState) => {
        finalState.sandboxes.gone = { state: "paused", metadata: {}, version: 1, fence: 0 };
        finalState.listed.push({ id: "gone", state: "paused", metadata: {}, scope: "" });
      },
    ],
    [
      "a scope that returns an ended sandbox",
      "scopes shared",
      ({ created }) => created.push({ id: "gone", scope: "repo", calledMs: 6, returnedMs: 7 }),
    ],
    [
      "a scope with two",
      "scopes shared",
      (_, finalState) => {
        finalState.sandboxes.second = { state: "paused", metadata: {}, version: 1, fence: 0 };
        finalState.listed.push({ id: "second", state: "paused", metadata: {}, scope: "repo" });
      },
    ],
    [
      "a checkpoint that is gone",
      "checkpoints lost",
      (_, finalState) => Object.assign(contentsOf(finalState), { checkpoints: [] }),
    ],
    [
      "a checkpoint that exists after its end",
      "checkpoints lost",
      (_, finalState) => contentsOf(finalState).checkpoints.push("dropped"),
    ],
  ])("[CA5] lost sandboxes and checkpoints are found: %s", (_, name, breaks) => {
    expect(findingsAfter(breaks)).toEqual([name]);
  });

  it.each<[string, Break]>([
    [
      "an acknowledged one that ran twice",
      (_, finalState) => contentsOf(finalState).ran.push("acked"),
    ],
    ["a cut off one that ran twice", (_, finalState) => contentsOf(finalState).ran.push("cut")],
    ["an acknowledged one that never ran", (_, finalState) => contentsOf(finalState).ran.shift()],
    ["a refused one that ran", (_, finalState) => contentsOf(finalState).ran.push("refused")],
  ])("[CA6] runs that are lost or repeated are found: %s", (_, breaks) => {
    expect(findingsAfter(breaks)).toEqual(["runs lost or repeated"]);
  });

  it.each<[string, CheckName, Break]>([
    [
      "a fence that was undone",
      "fences wrong",
      (_, finalState) => Object.assign(seen(finalState), { fence: 4 }),
    ],
    [
      "a fence given twice",
      "fences wrong",
      ({ grants }) =>
        grants.push({ sandboxId: sampleId, holder: "eve", fence: 5, calledMs: 2, returnedMs: 3 }),
    ],
    [
      "a fence that fell",
      "fences wrong",
      ({ grants }) =>
        grants.push({ sandboxId: sampleId, holder: "eve", fence: 4, calledMs: 4, returnedMs: 5 }),
    ],
    [
      "a stale holder who still works",
      "leases overlapped",
      (_, finalState) => contentsOf(finalState).holds.push("L 3 b x4"),
    ],
    [
      "two holders at once",
      "leases overlapped",
      (_, finalState) =>
        contentsOf(finalState).holds.push("L 6 b x4", "L 7 b x5", "L 6 e x4", "L 7 e x5"),
    ],
    [
      "parallel work without a lease",
      "leases overlapped",
      (_, finalState) =>
        contentsOf(finalState).holds.push("U w b", "L 6 b x4", "U w e", "L 6 e x4"),
    ],
  ])("[CA7] two holders are found: %s", (_, name, breaks) => {
    expect(findingsAfter(breaks)).toEqual([name]);
  });

  it.each(["L ", "L", "L 3", "L 3 ", "L 3 b", "L 3 b "])(
    "[CA7] a line that a full disk has cut off names no holder: '%s'",
    (line) => {
      expect(findingsAfter((_, finalState) => contentsOf(finalState).holds.push(line))).toEqual([]);
    },
  );

  it.each<[string, CheckName, Break]>([
    [
      "a value that nobody wrote",
      "reads wrong",
      ({ reads }) => Object.assign(item(reads, 0), { got: "3" }),
    ],
    ["a gap", "streams broken", ({ streams }) => item(streams, 0).lines.splice(1, 1)],
    ["a repeat", "streams broken", ({ streams }) => item(streams, 0).lines.splice(1, 0, 0)],
    ["an end before the end", "streams broken", ({ streams }) => item(streams, 0).lines.pop()],
  ])("[CA8] what clients must not see is found: %s", (_, name, breaks) => {
    expect(findingsAfter(breaks)).toEqual([name]);
  });

  it.each<[string, CheckName, Break]>([
    ["a call without an end", "hung", ({ calls }) => void delete item(calls, 0).outcome],
    [
      "a call beyond the limit",
      "hung",
      ({ calls }) => Object.assign(item(calls, 0), { outcome: "hung" }),
    ],
    [
      "a fault of the server",
      "failures untyped",
      ({ calls }) => Object.assign(item(calls, 2), { code: "internal" }),
    ],
    [
      "an error of no form",
      "failures untyped",
      ({ calls }) => Object.assign(item(calls, 2), { code: "untyped" }),
    ],
  ])("[CA9] calls without an end or a typed failure are found: %s", (_, name, breaks) => {
    expect(findingsAfter(breaks)).toEqual([name]);
  });

  it.each<[string, CheckName, Break]>([
    ["a sandbox that is not listed", "lists wrong", (_, finalState) => finalState.listed.shift()],
    [
      "a state of yesterday",
      "lists wrong",
      (_, finalState) => Object.assign(item(finalState.listed, 0), { state: "paused" }),
    ],
    [
      "metadata of yesterday",
      "lists wrong",
      (_, finalState) => Object.assign(item(finalState.listed, 0).metadata, { key: "1" }),
    ],
    [
      "one that has ended",
      "lists wrong",
      (_, finalState) =>
        finalState.listed.push({ id: "gone", state: "running", metadata: {}, scope: "other" }),
    ],
    [
      "no stable state",
      "unsettled",
      (_, finalState) => finalState.unsettled.push("a sandbox is starting"),
    ],
    ["a leftover process", "leftovers", (_, finalState) => finalState.leftovers.push("process 7")],
  ])("[CA10] what does not settle is found: %s", (_, name, breaks) => {
    expect(findingsAfter(breaks)).toEqual([name]);
  });
});
