/**
 * Owns the row of what grows: the same work with more live sandboxes, longer lists, longer queues, more viewers.
 * Does not own how each is measured (test/bench/growth/). The ratio is against the first of its kind.
 */
import type { Bench, Figure } from "../figure.ts";
import { directoryGrowth } from "../growth/directory.ts";
import { live } from "../growth/live.ts";
import { queue } from "../growth/queue.ts";
import { viewers } from "../growth/viewers.ts";

export async function growth(bench: Bench): Promise<Figure[]> {
  return [
    ...(await live(bench)),
    ...(await directoryGrowth(bench)),
    ...(await queue(bench)),
    ...(await viewers(bench)),
  ];
}
