/**
 * Owns the client that commits and rolls back two sandboxes of its own together: both go back to the same commit.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Commit } from "../../../src/client/index.ts";
import type { ClientMaker } from "../harness.ts";
import { outcomeOf, untilKnown } from "./idempotency.ts";
import { ownBox } from "./restores.ts";

const members = ["one", "two"];
const triesMax = 20;
const triesAgainAfterMs = 1_000;

export const plans: ClientMaker = (desk) => {
  let name = "";
  let boxes: string[] = [];
  /** What both were committed as; more than one where the end of a commit was never learned. */
  let committed = new Set<string>();
  let next = 0;
  let isSetUp = false;
  /** A run whose end was never learned may still change the members: nothing more can be said of them. */
  const beginAnew = () => {
    name = `plan-${desk.mark()}`;
    boxes = [];
    committed = new Set();
    isSetUp = false;
  };
  beginAnew();

  const setUp = async () => {
    while (boxes.length < members.length) {
      const box = await ownBox(desk);
      if (box === undefined) return false;
      boxes.push(box);
    }
    const made = await desk.call("plan", "", (berth) => berth.plan(name).put());
    if (made.outcome !== "ack") return false;
    for (const [n, key] of members.entries()) {
      const member = { sandboxId: boxes[n] ?? "" };
      const joined = await desk.call("member", "", (b) => b.plan(name).putMember(key, member));
      if (joined.outcome !== "ack") return false;
    }
    return true;
  };

  const runUntilKnown = async (what: "commit" | "rollback"): Promise<Commit | undefined> => {
    const idempotencyKey = `${what}-${desk.mark()}`;
    for (let tries = 0; tries < triesMax; tries += 1) {
      const run = await desk.call(what, "", (berth) =>
        berth.plan(name)[what]({ waitMs: 10_000 }, { idempotencyKey }),
      );
      if (run.outcome === "ack" && run.value.outcome !== "pending") return run.value;
      const isNothing = ["nothing_to_commit", "nothing_to_roll_back", "lease_held"];
      if (run.outcome === "refused" && isNothing.includes(run.code)) return undefined;
      await pause(triesAgainAfterMs);
    }
    beginAnew();
    return undefined;
  };

  const wroteAll = async (text: string) => {
    const marker = desk.mark();
    const command = `echo ${text} > /workspace/new && mv /workspace/new /workspace/version`;
    for (const box of boxes) {
      const told = await untilKnown(desk, box, `${marker}-${box}`, command);
      if (outcomeOf(told) !== "ack") return false;
    }
    return true;
  };

  const read = async (what: string, allowed: string[]): Promise<string | undefined> => {
    let same: string | undefined;
    for (const box of boxes) {
      const told = await untilKnown(desk, box, desk.mark(), "cat /workspace/version");
      if (told.outcome !== "ack" || told.value.exitCode !== 0) return undefined;
      const got = told.value.stdout.trim();
      const may = same === undefined ? allowed : [same];
      desk.history.reads.push({ client: desk.name, what, box, allowed: may, got });
      same = got;
    }
    return same;
  };

  return async () => {
    isSetUp ||= await setUp();
    if (!isSetUp) return;
    next += 1;
    const text = String(next);
    if (!(await wroteAll(text))) return;
    if (committed.size === 0 || desk.random.chance(0.6)) {
      const before = [...committed];
      committed = new Set([...before, text]);
      const run = await runUntilKnown("commit");
      if (run?.outcome === "committed") committed = new Set([text]);
      if (run?.outcome === "aborted") committed = new Set(before);
      await read("a member after a commit", [text]);
      return;
    }
    const run = await runUntilKnown("rollback");
    if (run === undefined) return;
    const allowed = run.outcome === "rolled_back" ? [...committed] : [text];
    const got = await read(`a member after a rollback (${run.outcome})`, allowed);
    if (got !== undefined && run.outcome === "rolled_back") committed = new Set([got]);
  };
};
