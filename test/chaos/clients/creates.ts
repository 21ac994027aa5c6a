/**
 * Owns the client that finds or makes sandboxes by scope and by key, works in them a moment, and destroys them.
 */
import type { ClientMaker } from "../harness.ts";
import type { Ended } from "../history.ts";

const scopes = 3;

export const creates: ClientMaker = (desk) => async () => {
  const repo = `repo-${desk.random.between(1, scopes)}`;
  const isScoped = desk.random.chance(0.7);
  const call = {
    ...(isScoped ? { scope: { repo, branch: "main", config: "none" } } : {}),
    ...{ start: desk.random.chance(0.3), waitMs: 10_000, metadata: { by: desk.name } },
  };
  const idempotencyKey = `create-${desk.mark()}`;
  const askedMs = desk.history.now();
  const made = await desk.call("create", "", (berth) => berth.create(call, { idempotencyKey }));
  if (made.outcome !== "ack") return;
  const { id } = made.value;
  const answeredMs = desk.history.now();
  desk.history.made.push({ id, ...(isScoped ? { scope: repo } : {}), askedMs, answeredMs });
  if (desk.random.chance(0.2)) {
    const again = await desk.call("create", "", (berth) => berth.create(call, { idempotencyKey }));
    if (again.outcome === "ack") {
      const what = "a create with a key, repeated";
      desk.history.reads.push({
        ...{ client: desk.name, what, box: id, allowed: [id], got: again.value.id },
      });
    }
  }
  if (call.start) await desk.ask("exec", id, (sandbox) => sandbox.exec({ command: "true" }));
  if (!isScoped || desk.random.chance(0.5)) {
    const end: Ended = { id, askedMs: desk.history.now() };
    desk.history.ended.push(end);
    const gone = await desk.ask("destroy", id, (sandbox) => sandbox.destroy({ force: true }));
    if (gone.outcome === "ack") end.ackedMs = desk.history.now();
  }
};
