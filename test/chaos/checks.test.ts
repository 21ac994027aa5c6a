import { describe, expect, it } from "vitest";
import { type CheckName, findingsOf } from "./checks.ts";
import type { FinalState, ListedSandbox, SandboxContents, SandboxState } from "./final-state.ts";
import type { Call, History, Read, Stream } from "./history.ts";
import { sample, sampleId } from "./sample.ts";

/** The sample, and in it all that concerns the first sandbox, call, read and stream. */
type Sample = {
  history: History;
  finalState: FinalState;
  sandbox: SandboxState;
  contents: SandboxContents;
  listed: ListedSandbox;
  call: Call;
  read: Read;
  stream: Stream;
};
type Break = (sample: Sample) => unknown;

/** The names of the checks that find something. */
function findingsAfter(breaks: Break): string[] {
  const { history, finalState } = sample();
  breaks({
    history,
    finalState,
    sandbox: finalState.sandboxes[sampleId] as SandboxState,
    contents: finalState.contents[sampleId] as SandboxContents,
    listed: finalState.listed[0] as ListedSandbox,
    call: history.calls[0] as Call,
    read: history.reads[0] as Read,
    stream: history.streams[0] as Stream,
  });
  const found = Object.entries(findingsOf(history, finalState));
  return found.filter(([, problems]) => problems.length > 0).map(([name]) => name);
}

/** Each break is found by exactly this check. */
function finds(title: string, check: CheckName, breaks: Record<string, Break>): void {
  it.each(Object.entries(breaks))(`${title} %s`, (_, change) => {
    expect(findingsAfter(change)).toEqual([check]);
  });
}

const paused = { state: "paused", metadata: {}, version: 1, fence: 0 };
const listedPaused = { state: "paused", metadata: {}, scope: "" };

describe("the checks of a chaos run", () => {
  it("[CA1] find nothing in a history in which nothing went wrong, whatever an interrupted call did", () => {
    expect(findingsAfter(() => {})).toEqual([]);
    expect(findingsAfter(({ contents }) => contents.ran.pop())).toEqual([]);
    expect(findingsAfter(({ contents }) => contents.checkpoints.pop())).toEqual([]);
    const interrupted: Break = ({ sandbox, listed }) => {
      sandbox.metadata.key = "3";
      listed.metadata.key = "3";
    };
    expect(findingsAfter(interrupted)).toEqual([]);
  });

  finds("[CA2] lost metadata is found:", "metadata lost", {
    "an acknowledged value is lost": ({ sandbox, listed }) => {
      sandbox.metadata.key = "1";
      listed.metadata.key = "1";
    },
    "a key is gone": ({ sandbox, listed }) => {
      delete sandbox.metadata.key;
      delete listed.metadata.key;
    },
  });

  finds("[CA3] wrong versions are found:", "versions wrong", {
    "two changes with one number": ({ history }) =>
      history.versions.push({ sandboxId: sampleId, version: 3 }),
    "a condition that did not hold": ({ history }) =>
      history.versions.push({ sandboxId: sampleId, version: 4, ifMatch: 2 }),
    "a number that was undone": ({ sandbox }) => Object.assign(sandbox, { version: 2 }),
  });

  finds("[CA4] lost files are found:", "files lost", {
    "other bytes": ({ contents }) => Object.assign(contents.files, { "/workspace/f/one": "bad" }),
    "no file": ({ contents }) => Object.assign(contents, { files: {} }),
    "a file whose write was refused": ({ contents }) =>
      Object.assign(contents.files, { "/workspace/f/two": "other" }),
  });

  finds("[CA5] lost sandboxes are found:", "sandboxes lost", {
    "one that is unknown": ({ finalState }) => {
      finalState.sandboxes[sampleId] = "gone";
      finalState.contents = {};
      finalState.listed.shift();
    },
    "one that nobody ended": ({ finalState, sandbox }) => {
      sandbox.state = "destroyed";
      finalState.listed.shift();
    },
    "one that exists after its end": ({ finalState }) => {
      finalState.sandboxes.gone = paused;
      finalState.listed.push({ id: "gone", ...listedPaused });
    },
  });

  finds("[CA5] shared scopes are found:", "scopes shared", {
    "a scope that returns an ended sandbox": ({ history }) =>
      history.created.push({ id: "gone", scope: "repo", calledMs: 6, returnedMs: 7 }),
    "a scope with two": ({ finalState }) => {
      finalState.sandboxes.second = paused;
      finalState.listed.push({ id: "second", ...listedPaused, scope: "repo" });
    },
  });

  finds("[CA5] lost checkpoints are found:", "checkpoints lost", {
    "a checkpoint that is gone": ({ contents }) => Object.assign(contents, { checkpoints: [] }),
    "a checkpoint that exists after its end": ({ contents }) =>
      contents.checkpoints.push("dropped"),
  });

  finds("[CA6] runs that are lost or repeated are found:", "runs lost or repeated", {
    "an acknowledged one that ran twice": ({ contents }) => contents.ran.push("acked"),
    "a cut off one that ran twice": ({ contents }) => contents.ran.push("cut"),
    "an acknowledged one that never ran": ({ contents }) => contents.ran.shift(),
    "a refused one that ran": ({ contents }) => contents.ran.push("refused"),
  });

  const grant = { sandboxId: sampleId, holder: "eve" };
  finds("[CA7] wrong fences are found:", "fences wrong", {
    "a fence that was undone": ({ sandbox }) => Object.assign(sandbox, { fence: 4 }),
    "a fence given twice": ({ history }) =>
      history.grants.push({ ...grant, fence: 5, calledMs: 2, returnedMs: 3 }),
    "a fence that fell": ({ history }) =>
      history.grants.push({ ...grant, fence: 4, calledMs: 4, returnedMs: 5 }),
  });

  finds("[CA7] two holders are found:", "leases overlapped", {
    "a stale holder who still works": ({ contents }) => contents.holds.push("L 3 b x4"),
    "two holders at once": ({ contents }) =>
      contents.holds.push("L 6 b x4", "L 7 b x5", "L 6 e x4", "L 7 e x5"),
    "parallel work without a lease": ({ contents }) =>
      contents.holds.push("U w b", "L 6 b x4", "U w e", "L 6 e x4"),
  });

  it.each(["L ", "L", "L 3", "L 3 ", "L 3 b", "L 3 b "])(
    "[CA7] a line that a full disk has cut off names no holder: '%s'",
    (line) => {
      expect(findingsAfter(({ contents }) => contents.holds.push(line))).toEqual([]);
    },
  );

  finds("[CA8] what clients must not see is found:", "reads wrong", {
    "a value that nobody wrote": ({ read }) => Object.assign(read, { got: "3" }),
  });

  finds("[CA8] a broken stream is found:", "streams broken", {
    "a gap": ({ stream }) => stream.lines.splice(1, 1),
    "a repeat": ({ stream }) => stream.lines.splice(1, 0, 0),
    "an end before the end": ({ stream }) => stream.lines.pop(),
  });

  finds("[CA9] calls without an end are found:", "hung", {
    "a call without an end": ({ call }) => delete call.outcome,
    "a call beyond the limit": ({ call }) => Object.assign(call, { outcome: "hung" }),
  });

  finds("[CA9] failures that are not typed are found:", "failures untyped", {
    "a fault of the server": ({ call }) => Object.assign(call, { code: "internal" }),
    "an error of no form": ({ call }) => Object.assign(call, { code: "untyped" }),
  });

  finds("[CA10] wrong lists are found:", "lists wrong", {
    "a sandbox that is not listed": ({ finalState }) => finalState.listed.shift(),
    "a state of yesterday": ({ listed }) => Object.assign(listed, { state: "paused" }),
    "metadata of yesterday": ({ listed }) => Object.assign(listed.metadata, { key: "1" }),
    "one that has ended": ({ finalState }) =>
      finalState.listed.push({ id: "gone", state: "running", metadata: {}, scope: "other" }),
  });

  finds("[CA10] what does not settle is found:", "unsettled", {
    "no stable state": ({ finalState }) => finalState.unsettled.push("a sandbox is starting"),
  });

  finds("[CA10] what is left is found:", "leftovers", {
    "a leftover process": ({ finalState }) => finalState.leftovers.push("process 7"),
  });
});
