/**
 * Gives and takes back the names of a tenant's plans. Each name comes with a unique time, which tells two plans of one name
 * apart. A name that is not registered here never reaches a plan's object.
 */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { PlansPage, PlansQuery } from "../../protocol/plan.ts";
import type { ObjectHost } from "../shared/host.ts";

export type PlanName = { createdAt: number; made: boolean };

export function putPlanName(host: ObjectHost, name: string): PlanName {
  const known = planCreatedAt(host, name);
  if (known !== undefined) return { createdAt: known, made: false };
  const [row] = host.sql<{ n: number; newestAt: number }>(
    "SELECT (SELECT count(*) FROM plan) AS n, plan_at AS newestAt FROM directory",
  );
  if (row === undefined) throw new Error("a Directory has its row");
  if (row.n >= limits.plansMax) {
    throw new BerthError("too_many", `There are ${row.n} plans.`, {
      facts: { plansMax: limits.plansMax },
    });
  }
  // Unique even if the clock goes backwards.
  const createdAt = Math.max(host.clock(), row.newestAt + 1);
  host.sql("UPDATE directory SET plan_at = ?", createdAt);
  host.sql("INSERT INTO plan VALUES (?, ?)", name, createdAt);
  return { createdAt, made: true };
}

export function planCreatedAt(host: ObjectHost, name: string): number | undefined {
  const [row] = host.sql<{ created_at: number }>(
    "SELECT created_at FROM plan WHERE name = ?",
    name,
  );
  return row?.created_at;
}

/** Keeps a name that was given again later. */
export function forgetPlanName(host: ObjectHost, name: string, createdAt: number): void {
  host.sql("DELETE FROM plan WHERE name = ? AND created_at <= ?", name, createdAt);
}

export function planPage(host: ObjectHost, { limit, cursor }: PlansQuery): PlansPage {
  const rows = host.sql<{ name: string; created_at: number }>(
    "SELECT name, created_at FROM plan WHERE name > ? ORDER BY name LIMIT ?",
    cursor ?? "",
    limit + 1,
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    plans: shown.map(({ name, created_at }) => ({
      name,
      createdAt: new Date(created_at).toISOString(),
    })),
    nextCursor: rows.length > limit && last !== undefined ? last.name : null,
  };
}
