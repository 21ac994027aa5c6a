/** A client that finds or creates sandboxes by scope and by key, uses them briefly, and destroys them. */
import type { ClientMaker } from "../harness.ts";
import type { DestroyedSandbox } from "../history.ts";

const scopes = 3;

export const creates: ClientMaker = (harness) => async () => {
  const repo = `repo-${harness.random.between(1, scopes)}`;
  const isScoped = harness.random.chance(0.7);
  const call = {
    ...(isScoped ? { scope: { repo, branch: "main", config: "none" } } : {}),
    ...{ start: harness.random.chance(0.3), waitMs: 10_000, metadata: { by: harness.name } },
  };
  const idempotencyKey = `create-${harness.mark()}`;
  const calledMs = harness.history.now();
  const made = await harness.call("create", "", (berth) => berth.create(call, { idempotencyKey }));
  if (made.outcome !== "ack") return;
  const { id } = made.value;
  const returnedMs = harness.history.now();
  harness.history.created.push({ id, ...(isScoped ? { scope: repo } : {}), calledMs, returnedMs });
  if (harness.random.chance(0.2)) {
    const repeated = await harness.call("create", "", (berth) =>
      berth.create(call, { idempotencyKey }),
    );
    if (repeated.outcome === "ack") {
      const what = "a create with a key, repeated";
      harness.recordRead({ what, sandboxId: id, allowed: [id], got: repeated.value.id });
    }
  }
  if (call.start)
    await harness.callSandbox("exec", id, (sandbox) => sandbox.exec({ command: "true" }));
  if (!isScoped || harness.random.chance(0.5)) {
    const end: DestroyedSandbox = { id, calledMs: harness.history.now() };
    harness.history.destroyed.push(end);
    const destroyed = await harness.callSandbox("destroy", id, (sandbox) =>
      sandbox.destroy({ force: true }),
    );
    if (destroyed.outcome === "ack") end.ackedMs = harness.history.now();
  }
};
