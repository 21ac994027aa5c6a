/**
 * Measures how times grow with more running sandboxes, longer lists, longer queues and more viewers
 * (test/bench/growth/). The ratio is against the first figure of its kind.
 */
import type { Bench, Figure } from "../figure.ts";
import { directoryGrowth } from "../growth/directory.ts";
import { queueGrowth } from "../growth/queue.ts";
import { runningSandboxGrowth } from "../growth/running-sandboxes.ts";
import { viewerGrowth } from "../growth/viewers.ts";

export async function growth(bench: Bench): Promise<Figure[]> {
  return [
    ...(await runningSandboxGrowth(bench)),
    ...(await directoryGrowth(bench)),
    ...(await queueGrowth(bench)),
    ...(await viewerGrowth(bench)),
  ];
}
