/**
 * Owns reading all plans, page by page.
 */
import type { Berth } from "../../client/index.ts";
import type { PlansPage } from "../../protocol/plan.ts";

export async function allPlans(berth: Berth): Promise<PlansPage["plans"]> {
  const all: PlansPage["plans"] = [];
  let cursor: string | null = null;
  do {
    const page: PlansPage = await berth.plans(cursor === null ? {} : { cursor });
    all.push(...page.plans);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return all;
}
