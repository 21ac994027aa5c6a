/**
 * Owns the client whose commands follow each other closely, several at once: they go by the line between object and agent.
 */
import { type ClientMaker, type Desk, markedWork, ranWell } from "../harness.ts";
import type { Run } from "../history.ts";

const wide = 6;
const each = 5;

export const bursts: ClientMaker = (desk) => async () => {
  const box = desk.box();
  const row = async () => {
    // Who is refused, or cut off, comes again with the next turn.
    for (let n = 0; n < each && (await one(desk, box)); n += 1);
  };
  await Promise.all(Array.from({ length: wide }, row));
};

/** Whether it ran. */
async function one(desk: Desk, box: string): Promise<boolean> {
  const marker = desk.mark();
  const run: Run = { box, marker, outcome: "unknown" };
  desk.history.runs.push(run);
  const command = `${markedWork(marker, desk.random.between(0, 9))} && echo ${marker}`;
  const told = await desk.ask("exec in a burst", box, (sandbox) => sandbox.exec({ command }));
  run.outcome = ranWell(told);
  if (run.outcome !== "ack" || told.outcome !== "ack") return false;
  const got = told.value.stdout.trim();
  const what = "the answer of a command in a burst";
  desk.history.reads.push({ client: desk.name, what, box, allowed: [marker], got });
  return true;
}
