/**
 * Owns the client that has a sandbox of its own, whose files it changes, saves and brings back: the tree is always one
 * that it was, whole. What its lease was lost over cannot come late: the next holder's look decides.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { ClientMaker, Desk } from "../harness.ts";

const keptMax = 3;
const files = 20;
const letsGoTries = 10;
const notesMax = 10;

export const restores: ClientMaker = (desk) => {
  let box: string | undefined;
  /** What the tree may be, and each checkpoint: one number, or those that an unknown end leaves open. */
  let now = new Set(["none"]);
  const saved = new Map<string, Set<string>>();
  let next = 0;
  /** Before chance decides, each thing is done once. */
  let wasRestored = false;
  /** What was done to the tree, the newest last. */
  const done: string[] = [];
  const note = (what: string) => {
    done.push(`${Math.round(desk.history.now())} ${what}`);
    if (done.length > notesMax) done.shift();
  };

  const turnUnder = async (id: string, lease: string) => {
    const read = await desk.ask("look", id, (sandbox) =>
      sandbox.exec({ command: looking }, { lease }),
    );
    if (read.outcome !== "ack" || read.value.exitCode !== 0) return;
    const got = read.value.stdout.trim();
    const allowed = [...now];
    const trail = allowed.includes(got) ? [] : [...done, ...desk.history.trail(id)];
    desk.history.reads.push({ client: desk.name, what: "the tree", box: id, allowed, got, trail });
    now = new Set([got]);
    const turn = desk.random.between(0, 9);
    const old = [...saved.keys()];
    const chosen = old[desk.random.between(0, old.length - 1)];
    if (got === "none" || (wasRestored && turn < 4)) {
      next += 1;
      const to = String(next);
      const wrote = await desk.ask("write", id, (sandbox) =>
        sandbox.exec({ command: writing(to) }, { lease }),
      );
      note(`write ${to}: ${wrote.outcome}`);
      if (wrote.outcome === "ack" && wrote.value.exitCode === 0) now = new Set([to]);
      else if (wrote.outcome !== "refused") now.add(to);
    } else if (chosen === undefined || (wasRestored && turn < 7)) {
      const made = await desk.ask("checkpoint", id, (sandbox) =>
        sandbox.makeCheckpoint({}, { lease }),
      );
      note(`checkpoint of ${got}: ${made.outcome}`);
      if (made.outcome === "ack") saved.set(made.value.id, new Set(now));
      const first = saved.size > keptMax ? old[0] : undefined;
      if (first === undefined) return;
      saved.delete(first);
      await desk.ask("drop", id, (sandbox) => sandbox.removeCheckpoint(first));
    } else {
      const back = await desk.ask("restore", id, (sandbox) => sandbox.restore(chosen, { lease }));
      const then = saved.get(chosen) ?? [];
      wasRestored ||= back.outcome === "ack";
      const state = back.outcome === "ack" ? back.value.state : back.code;
      note(`restore of ${[...then].join(" or ")} over ${got}: ${back.outcome} ${state}`);
      // A disk without room for them leaves the old files, and that is told as a state: failed.
      if (state === "running") now = new Set(then);
      // They may be back where the container did not come up with them.
      else if (back.outcome !== "refused" || back.code === "start_failed") {
        now = new Set([...now, ...then]);
      }
    }
  };

  return async () => {
    box ??= await ownBox(desk);
    if (box === undefined) return;
    const id = box;
    const call = { holder: desk.mark(), ttlMs: 60_000, waitMs: 20_000 };
    const told = await desk.ask("acquire", id, (sandbox) => sandbox.acquireLease(call));
    if (told.outcome !== "ack" || !("token" in told.value)) {
      await desk.ask("break", id, (sandbox) => sandbox.breakLease("nobody else is here"));
      return;
    }
    const { token } = told.value;
    await turnUnder(id, token);
    for (let n = 0; n < letsGoTries; n += 1) {
      const released = await desk.ask("release", id, (sandbox) =>
        sandbox.releaseLease(token, { force: true }),
      );
      if (released.outcome === "ack" || released.outcome === "refused") break;
      await pause(300);
    }
  };
};

const looking = "cd /workspace && if [ -e now ]; then cat now/* | sort -u; else echo none; fi";

/** The new tree takes the place of the old one in one step, and is never seen half. */
function writing(to: string): string {
  return [
    "cd /workspace && rm -rf to next",
    `mkdir -p v${to} && for i in $(seq ${files}); do echo ${to} > v${to}/$i || exit 1; done`,
    `ln -sfn v${to} next && mv -T next now && find . -maxdepth 1 -name 'v*' ! -name v${to} -exec rm -rf {} +`,
  ].join(" && ");
}

/** Known to nobody else. */
export async function ownBox(desk: Desk): Promise<string | undefined> {
  const key = desk.mark();
  const askedMs = desk.history.now();
  const made = await desk.call("create", "", (berth) =>
    berth.create({ onIdle: "none", waitMs: 20_000 }, { idempotencyKey: `own-box-${key}` }),
  );
  if (made.outcome !== "ack") return undefined;
  const { id } = made.value;
  desk.history.made.push({ id, askedMs, answeredMs: desk.history.now() });
  return id;
}
