/**
 * Owns the client that pauses and starts the boxes that others work in, and makes and removes checkpoints of them.
 */
import type { ClientMaker } from "../harness.ts";
import type { Saved } from "../history.ts";

const keptOfBox = 3;

export const lives: ClientMaker = (desk) => {
  const own = new Map<string, Saved[]>();
  return async () => {
    const box = desk.box();
    const turn = desk.random.between(0, 9);
    if (turn < 3) await desk.ask("pause", box, (sandbox) => sandbox.pause({ waitMs: 2_000 }));
    else if (turn < 6) await desk.ask("start", box, (sandbox) => sandbox.start());
    else if (turn < 9) {
      const saved = own.get(box) ?? [];
      own.set(box, saved);
      const made = await desk.ask("checkpoint", box, (sandbox) =>
        sandbox.makeCheckpoint({ name: desk.mark() }, { waitMs: 2_000 }),
      );
      if (made.outcome === "ack") {
        const one: Saved = { box, id: made.value.id };
        desk.history.saved.push(one);
        saved.push(one);
      }
      const oldest = saved.length > keptOfBox ? saved.shift() : undefined;
      if (oldest === undefined) return;
      oldest.drop = "asked";
      const gone = await desk.ask("drop", box, (sandbox) => sandbox.removeCheckpoint(oldest.id));
      if (gone.outcome === "ack") oldest.drop = "acked";
    } else await desk.ask("touch", box, (sandbox) => sandbox.touch());
  };
};
