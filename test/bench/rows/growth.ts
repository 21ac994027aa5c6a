/**
 * Measures how times grow with more running sandboxes, longer lists, longer queues and more viewers
 * (test/bench/growth/). The ratio is against the first figure of its kind.
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
