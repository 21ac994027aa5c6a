/**
 * Owns the client that runs commands without a key: each runs once at most, and says when it begins and ends, so that
 * work beside a lease is seen.
 */
import { type ClientMaker, marking, ranWell } from "../desk.ts";
import type { Run } from "../history.ts";

export const execs: ClientMaker = (desk) => async () => {
  const box = desk.box();
  const marker = desk.mark();
  const run: Run = { box, marker, outcome: "unknown" };
  desk.history.runs.push(run);
  const steps = [
    marking("ran", marker),
    marking("holds", `U ${marker} b`),
    `sleep 0.0${desk.random.between(0, 9)}`,
    marking("holds", `U ${marker} e`),
  ];
  const call = { command: steps.join(" && ") };
  const options = desk.random.chance(0.3) ? { waitMs: 2_000 } : {};
  run.outcome = ranWell(await desk.ask("exec", box, (sandbox) => sandbox.exec(call, options)));
};
