import { describe, expect, it } from "vitest";
import { type CheckName, findingsOf } from "./checks.ts";
import type { History } from "./history.ts";
import { box, sample } from "./sample.ts";
import type { Truth } from "./truth.ts";

type Break = (history: History, truth: Truth) => void;

/** The checks that notice; each told once at least. */
function noticed(breaks: Break): CheckName[] {
  const { history, truth } = sample();
  breaks(history, truth);
  const found = Object.entries(findingsOf(history, truth)).filter(([, told]) => told.length > 0);
  return found.map(([name]) => name as CheckName);
}

function kept({ kept }: Truth) {
  const there = kept[box];
  if (there === undefined) throw new Error("the sample has the box");
  return there;
}

function seen({ sandboxes }: Truth) {
  const there = sandboxes[box];
  if (there === undefined || there === "gone") throw new Error("the sample has the box");
  return there;
}

function item<Item>(items: Item[], at: number): Item {
  const found = items[at];
  if (found === undefined) throw new Error(`the sample has no item ${at}`);
  return found;
}

describe("the checker of the chaos", () => {
  it("[CA1] has nothing to say of a history in which nothing went wrong, whatever a call that was cut off did", () => {
    expect(noticed(() => {})).toEqual([]);
    expect(noticed((_, truth) => kept(truth).ran.pop())).toEqual([]);
    expect(noticed((_, truth) => kept(truth).checkpoints.pop())).toEqual([]);
    expect(
      noticed((_, truth) => {
        seen(truth).metadata.key = "3";
        item(truth.listed, 0).metadata.key = "3";
      }),
    ).toEqual([]);
  });

  it.each<[string, Break]>([
    [
      "an acknowledged value is lost",
      (_, truth) => {
        seen(truth).metadata.key = "1";
        item(truth.listed, 0).metadata.key = "1";
      },
    ],
    [
      "a key is gone",
      (_, truth) => {
        delete seen(truth).metadata.key;
        delete item(truth.listed, 0).metadata.key;
      },
    ],
  ])("[CA2] lost metadata is found: %s", (_, breaks) => {
    expect(noticed(breaks)).toEqual(["metadata lost"]);
  });

  it.each<[string, Break]>([
    ["two changes with one number", ({ versions }) => versions.push({ box, version: 3 })],
    [
      "a condition that did not hold",
      ({ versions }) => versions.push({ box, version: 4, ifMatch: 2 }),
    ],
    ["a number that was undone", (_, truth) => Object.assign(seen(truth), { version: 2 })],
  ])("[CA3] wrong versions are found: %s", (_, breaks) => {
    expect(noticed(breaks)).toEqual(["versions wrong"]);
  });

  it.each<[string, Break]>([
    ["other bytes", (_, truth) => Object.assign(kept(truth).files, { "/workspace/f/one": "bad" })],
    ["no file", (_, truth) => Object.assign(kept(truth), { files: {} })],
    [
      "a file whose write was refused",
      (_, truth) => Object.assign(kept(truth).files, { "/workspace/f/two": "other" }),
    ],
  ])("[CA4] lost files are found: %s", (_, breaks) => {
    expect(noticed(breaks)).toEqual(["files lost"]);
  });

  it.each<[string, CheckName, Break]>([
    [
      "one that is not known any more",
      "sandboxes lost",
      (_, truth) => {
        truth.sandboxes[box] = "gone";
        truth.kept = {};
        truth.listed.shift();
      },
    ],
    [
      "one that nobody ended",
      "sandboxes lost",
      (_, truth) => {
        seen(truth).state = "destroyed";
        truth.listed.shift();
      },
    ],
    [
      "one that lives after its end",
      "sandboxes lost",
      (_, truth) => {
        truth.sandboxes.gone = { state: "paused", metadata: {}, version: 1, fence: 0 };
        truth.listed.push({ id: "gone", state: "paused", metadata: {}, scope: "" });
      },
    ],
    [
      "a scope that gives what has ended",
      "scopes shared",
      ({ made }) => made.push({ id: "gone", scope: "repo", askedMs: 6, answeredMs: 7 }),
    ],
    [
      "a scope with two",
      "scopes shared",
      (_, truth) => {
        truth.sandboxes.second = { state: "paused", metadata: {}, version: 1, fence: 0 };
        truth.listed.push({ id: "second", state: "paused", metadata: {}, scope: "repo" });
      },
    ],
    [
      "a checkpoint that is gone",
      "checkpoints lost",
      (_, truth) => Object.assign(kept(truth), { checkpoints: [] }),
    ],
    [
      "a checkpoint that lives after its end",
      "checkpoints lost",
      (_, truth) => kept(truth).checkpoints.push("dropped"),
    ],
  ])("[CA5] lost sandboxes and checkpoints are found: %s", (_, name, breaks) => {
    expect(noticed(breaks)).toEqual([name]);
  });

  it.each<[string, Break]>([
    ["an acknowledged one that ran twice", (_, truth) => kept(truth).ran.push("acked")],
    ["a cut off one that ran twice", (_, truth) => kept(truth).ran.push("cut")],
    ["an acknowledged one that never ran", (_, truth) => kept(truth).ran.shift()],
    ["a refused one that ran", (_, truth) => kept(truth).ran.push("refused")],
  ])("[CA6] runs that are lost or repeated are found: %s", (_, breaks) => {
    expect(noticed(breaks)).toEqual(["runs lost or repeated"]);
  });

  it.each<[string, CheckName, Break]>([
    [
      "a fence that was undone",
      "fences wrong",
      (_, truth) => Object.assign(seen(truth), { fence: 4 }),
    ],
    [
      "a fence given twice",
      "fences wrong",
      ({ grants }) => grants.push({ box, holder: "eve", fence: 5, askedMs: 2, answeredMs: 3 }),
    ],
    [
      "a fence that fell",
      "fences wrong",
      ({ grants }) => grants.push({ box, holder: "eve", fence: 4, askedMs: 4, answeredMs: 5 }),
    ],
    [
      "a stale holder who still works",
      "holders met",
      (_, truth) => kept(truth).holds.push("L 3 b x4"),
    ],
    [
      "two holders at once",
      "holders met",
      (_, truth) => kept(truth).holds.push("L 6 b x4", "L 7 b x5", "L 6 e x4", "L 7 e x5"),
    ],
    [
      "work without a lease beside it",
      "holders met",
      (_, truth) => kept(truth).holds.push("U w b", "L 6 b x4", "U w e", "L 6 e x4"),
    ],
  ])("[CA7] two holders are found: %s", (_, name, breaks) => {
    expect(noticed(breaks)).toEqual([name]);
  });

  it.each(["L ", "L", "L 3", "L 3 ", "L 3 b", "L 3 b "])(
    "[CA7] a line that a full disk has cut off names no holder: '%s'",
    (line) => {
      expect(noticed((_, truth) => kept(truth).holds.push(line))).toEqual([]);
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
    expect(noticed(breaks)).toEqual([name]);
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
    expect(noticed(breaks)).toEqual([name]);
  });

  it.each<[string, CheckName, Break]>([
    ["a sandbox that is not listed", "lists wrong", (_, truth) => truth.listed.shift()],
    [
      "a state of yesterday",
      "lists wrong",
      (_, truth) => Object.assign(item(truth.listed, 0), { state: "paused" }),
    ],
    [
      "metadata of yesterday",
      "lists wrong",
      (_, truth) => Object.assign(item(truth.listed, 0).metadata, { key: "1" }),
    ],
    [
      "one that has ended",
      "lists wrong",
      (_, truth) =>
        truth.listed.push({ id: "gone", state: "running", metadata: {}, scope: "other" }),
    ],
    ["no rest", "unsettled", (_, truth) => truth.unsettled.push("a box is starting")],
    ["a process that is left", "strays", (_, truth) => truth.strays.push("process 7")],
  ])("[CA10] what does not come to rest is found: %s", (_, name, breaks) => {
    expect(noticed(breaks)).toEqual([name]);
  });
});
