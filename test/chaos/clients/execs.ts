/**
 * Owns the client that runs commands without a key: each runs once at most.
 */
import { type ClientMaker, markedWork, ranWell } from "../harness.ts";
import type { Run } from "../history.ts";

export const execs: ClientMaker = (desk) => async () => {
  const box = desk.box();
  const marker = desk.mark();
  const run: Run = { box, marker, outcome: "unknown" };
  desk.history.runs.push(run);
  const call = { command: markedWork(marker, desk.random.between(0, 9)) };
  const options = desk.random.chance(0.3) ? { waitMs: 2_000 } : {};
  run.outcome = ranWell(await desk.ask("exec", box, (sandbox) => sandbox.exec(call, options)));
};
