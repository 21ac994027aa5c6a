/** A client that pauses and starts the sandboxes that others use, and creates and removes checkpoints of them. */
import type { ClientMaker } from "../harness.ts";
import type { SavedCheckpoint } from "../history.ts";

const checkpointsEachMax = 3;

export const lifecycle: ClientMaker = (harness) => {
  const own = new Map<string, SavedCheckpoint[]>();
  return async () => {
    const sandboxId = harness.pickSandbox();
    const turn = harness.random.between(0, 9);
    if (turn < 3)
      await harness.callSandbox("pause", sandboxId, (sandbox) => sandbox.pause({ waitMs: 2_000 }));
    else if (turn < 6) await harness.callSandbox("start", sandboxId, (sandbox) => sandbox.start());
    else if (turn < 9) {
      const saved = own.get(sandboxId) ?? [];
      own.set(sandboxId, saved);
      const made = await harness.callSandbox("checkpoint", sandboxId, (sandbox) =>
        sandbox.makeCheckpoint({ name: harness.mark() }, { waitMs: 2_000 }),
      );
      if (made.outcome === "ack") {
        const checkpoint: SavedCheckpoint = { sandboxId, id: made.value.id };
        harness.history.saved.push(checkpoint);
        saved.push(checkpoint);
      }
      const oldest = saved.length > checkpointsEachMax ? saved.shift() : undefined;
      if (oldest === undefined) return;
      oldest.drop = "requested";
      const removed = await harness.callSandbox("drop", sandboxId, (sandbox) =>
        sandbox.removeCheckpoint(oldest.id),
      );
      if (removed.outcome === "ack") oldest.drop = "acked";
    } else await harness.callSandbox("touch", sandboxId, (sandbox) => sandbox.touch());
  };
};
