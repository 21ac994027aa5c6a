/**
 * A client with a sandbox of its own whose files it changes, saves and restores: the tree must always be one complete
 * earlier tree. A write whose lease was lost cannot arrive late, so the next holder's read decides.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { ClientMaker, Harness } from "../harness.ts";

const checkpointsMax = 3;
const files = 20;
const releaseTries = 10;
const notesMax = 10;

export const restores: ClientMaker = (harness) => {
  let sandboxId: string | undefined;
  /** The possible values of the tree and of each checkpoint: one number, or several after an unknown outcome. */
  let now = new Set(["none"]);
  const saved = new Map<string, Set<string>>();
  let next = 0;
  /** Each action happens once before the random choice. */
  let wasRestored = false;
  /** Actions on the tree, newest last. */
  const done: string[] = [];
  const noteAction = (what: string) => {
    done.push(`${Math.round(harness.history.now())} ${what}`);
    if (done.length > notesMax) done.shift();
  };

  const takeTurnUnder = async (id: string, lease: string) => {
    const read = await harness.callSandbox("read", id, (sandbox) =>
      sandbox.exec({ command: readTree }, { lease }),
    );
    if (read.outcome !== "ack" || read.value.exitCode !== 0) return;
    const got = read.value.stdout.trim();
    const allowed = [...now];
    const trail = allowed.includes(got) ? [] : [...done, ...harness.history.trail(id)];
    harness.recordRead({ what: "the tree", sandboxId: id, allowed, got, trail });
    now = new Set([got]);
    const turn = harness.random.between(0, 9);
    const old = [...saved.keys()];
    const chosen = old[harness.random.between(0, old.length - 1)];
    if (got === "none" || (wasRestored && turn < 4)) {
      next += 1;
      const to = String(next);
      const wrote = await harness.callSandbox("write", id, (sandbox) =>
        sandbox.exec({ command: writeTree(to) }, { lease }),
      );
      noteAction(`write ${to}: ${wrote.outcome}`);
      if (wrote.outcome === "ack" && wrote.value.exitCode === 0) now = new Set([to]);
      else if (wrote.outcome !== "refused") now.add(to);
    } else if (chosen === undefined || (wasRestored && turn < 7)) {
      const made = await harness.callSandbox("checkpoint", id, (sandbox) =>
        sandbox.makeCheckpoint({}, { lease }),
      );
      noteAction(`checkpoint of ${got}: ${made.outcome}`);
      if (made.outcome === "ack") saved.set(made.value.id, new Set(now));
      const first = saved.size > checkpointsMax ? old[0] : undefined;
      if (first === undefined) return;
      saved.delete(first);
      await harness.callSandbox("drop", id, (sandbox) => sandbox.removeCheckpoint(first));
    } else {
      const restored = await harness.callSandbox("restore", id, (sandbox) =>
        sandbox.restore(chosen, { lease }),
      );
      const then = saved.get(chosen) ?? [];
      wasRestored ||= restored.outcome === "ack";
      const state = restored.outcome === "ack" ? restored.value.state : restored.code;
      noteAction(`restore of ${[...then].join(" or ")} over ${got}: ${restored.outcome} ${state}`);
      // On a full disk the old files remain and the state is failed.
      if (state === "running") now = new Set(then);
      // They may be restored even if the container did not start.
      else if (restored.outcome !== "refused" || restored.code === "start_failed") {
        now = new Set([...now, ...then]);
      }
    }
  };

  return async () => {
    sandboxId ??= await createOwnSandbox(harness);
    if (sandboxId === undefined) return;
    const id = sandboxId;
    const call = { holder: harness.mark(), ttlMs: 60_000, waitMs: 20_000 };
    const result = await harness.callSandbox("acquire", id, (sandbox) =>
      sandbox.acquireLease(call),
    );
    if (result.outcome !== "ack" || !("token" in result.value)) {
      await harness.callSandbox("break", id, (sandbox) => sandbox.breakLease("only client"));
      return;
    }
    const { token } = result.value;
    await takeTurnUnder(id, token);
    for (let n = 0; n < releaseTries; n += 1) {
      const released = await harness.callSandbox("release", id, (sandbox) =>
        sandbox.releaseLease(token, { force: true }),
      );
      if (released.outcome === "ack" || released.outcome === "refused") break;
      await pause(300);
    }
  };
};

const readTree = "cd /workspace && if [ -e now ]; then cat now/* | sort -u; else echo none; fi";

/** Replaces the tree atomically, so that no partial tree can be read. */
function writeTree(to: string): string {
  return [
    "cd /workspace && rm -rf to next",
    `mkdir -p v${to} && for i in $(seq ${files}); do echo ${to} > v${to}/$i || exit 1; done`,
    `ln -sfn v${to} next && mv -T next now && find . -maxdepth 1 -name 'v*' ! -name v${to} -exec rm -rf {} +`,
  ].join(" && ");
}

/** Creates a sandbox that no other client uses. */
export async function createOwnSandbox(harness: Harness): Promise<string | undefined> {
  const key = harness.mark();
  const calledMs = harness.history.now();
  const made = await harness.call("create", "", (berth) =>
    berth.create({ onIdle: "none", waitMs: 20_000 }, { idempotencyKey: `own-sandboxId-${key}` }),
  );
  if (made.outcome !== "ack") return undefined;
  const { id } = made.value;
  harness.history.created.push({ id, calledMs, returnedMs: harness.history.now() });
  return id;
}
