/** A client that commits and rolls back two sandboxes of its own together: both must return to the same commit. */
import { setTimeout as pause } from "node:timers/promises";
import type { Commit } from "../../../src/client/index.ts";
import type { ClientMaker } from "../harness.ts";
import { outcomeOf, untilKnown } from "./idempotency.ts";
import { createOwnSandbox } from "./restores.ts";

const members = ["one", "two"];
const triesMax = 20;
const retryMs = 1_000;

export const plans: ClientMaker = (harness) => {
  let name = "";
  let sandboxIds: string[] = [];
  /** The committed value of both; several if the outcome of a commit is unknown. */
  let committed = new Set<string>();
  let next = 0;
  let isSetUp = false;
  /** A run with an unknown outcome may still change the members, so the client starts over with new ones. */
  const startOver = () => {
    name = `plan-${harness.mark()}`;
    sandboxIds = [];
    committed = new Set();
    isSetUp = false;
  };
  startOver();

  const setUp = async () => {
    while (sandboxIds.length < members.length) {
      const sandboxId = await createOwnSandbox(harness);
      if (sandboxId === undefined) return false;
      sandboxIds.push(sandboxId);
    }
    const made = await harness.call("plan", "", (berth) => berth.plan(name).put());
    if (made.outcome !== "ack") return false;
    for (const [n, key] of members.entries()) {
      const member = { sandboxId: sandboxIds[n] ?? "" };
      const joined = await harness.call("member", "", (b) => b.plan(name).putMember(key, member));
      if (joined.outcome !== "ack") return false;
    }
    return true;
  };

  const runUntilKnown = async (what: "commit" | "rollback"): Promise<Commit | undefined> => {
    const idempotencyKey = `${what}-${harness.mark()}`;
    for (let tries = 0; tries < triesMax; tries += 1) {
      const run = await harness.call(what, "", (berth) =>
        berth.plan(name)[what]({ waitMs: 10_000 }, { idempotencyKey }),
      );
      if (run.outcome === "ack" && run.value.outcome !== "pending") return run.value;
      const isNothing = ["nothing_to_commit", "nothing_to_roll_back", "lease_held"];
      if (run.outcome === "refused" && isNothing.includes(run.code)) return undefined;
      await pause(retryMs);
    }
    startOver();
    return undefined;
  };

  const writeAll = async (text: string) => {
    const marker = harness.mark();
    const command = `echo ${text} > /workspace/new && mv /workspace/new /workspace/version`;
    for (const sandboxId of sandboxIds) {
      const result = await untilKnown(harness, sandboxId, `${marker}-${sandboxId}`, command);
      if (outcomeOf(result) !== "ack") return false;
    }
    return true;
  };

  const read = async (what: string, allowed: string[]): Promise<string | undefined> => {
    let common: string | undefined;
    for (const sandboxId of sandboxIds) {
      const result = await untilKnown(harness, sandboxId, harness.mark(), "cat /workspace/version");
      if (result.outcome !== "ack" || result.value.exitCode !== 0) return undefined;
      const got = result.value.stdout.trim();
      const may = common === undefined ? allowed : [common];
      harness.recordRead({ what, sandboxId, allowed: may, got });
      common = got;
    }
    return common;
  };

  return async () => {
    isSetUp ||= await setUp();
    if (!isSetUp) return;
    next += 1;
    const text = String(next);
    if (!(await writeAll(text))) return;
    if (committed.size === 0 || harness.random.chance(0.6)) {
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
