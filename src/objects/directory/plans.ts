/**
 * Owns the names of a tenant's plans: given once at a time, each with a time of its own by which two plans of one
 * name are told apart. Does not own the plans: a name that is not here costs no object.
 */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { PlansPage, PlansQuery } from "../../protocol/plan.ts";
import type { Place } from "../shared/host.ts";

export type PlanName = { createdAt: number; made: boolean };

export function put(place: Place, name: string): PlanName {
  const known = createdAt(place, name);
  if (known !== undefined) return { createdAt: known, made: false };
  const [row] = place.sql<{ n: number; at: number }>(
    "SELECT (SELECT count(*) FROM plan) AS n, plan_at AS at FROM directory",
  );
  if (row === undefined) throw new Error("a Directory has its row");
  if (row.n >= limits.plansMax) {
    throw new BerthError("too_many", `There are ${row.n} plans.`, {
      facts: { plansMax: limits.plansMax },
    });
  }
  // No two have the same, whatever the clock does.
  const at = Math.max(place.clock(), row.at + 1);
  place.sql("UPDATE directory SET plan_at = ?", at);
  place.sql("INSERT INTO plan VALUES (?, ?)", name, at);
  return { createdAt: at, made: true };
}

export function createdAt(place: Place, name: string): number | undefined {
  return place.sql<{ at: number }>("SELECT created_at AS at FROM plan WHERE name = ?", name)[0]?.at;
}

/** Not one that was given later. */
export function forget(place: Place, name: string, at: number): void {
  place.sql("DELETE FROM plan WHERE name = ? AND created_at <= ?", name, at);
}

export function page(place: Place, { limit, cursor }: PlansQuery): PlansPage {
  const rows = place.sql<{ name: string; at: number }>(
    "SELECT name, created_at AS at FROM plan WHERE name > ? ORDER BY name LIMIT ?",
    cursor ?? "",
    limit + 1,
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    plans: shown.map(({ name, at }) => ({ name, createdAt: new Date(at).toISOString() })),
    nextCursor: rows.length > limit && last !== undefined ? last.name : null,
  };
}
