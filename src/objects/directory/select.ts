/**
 * Owns how rows of a list are found: for each question the index that has them in the list's order already, so that
 * the cost of a page does not grow with the number of sandboxes. Does not own what is made of them (list.ts).
 */
import type { SandboxesQuery } from "../../protocol/directory.ts";
import { limits } from "../../protocol/limits.ts";
import type { Place, SqlValue } from "../shared/host.ts";

/** `where` ends with a limit that is still to be bound. */
export type Selection = { from: string; where: string; bindings: SqlValue[] };

type Pair = { k: string; v: string };

/** Enough to tell a rare pair from a usual one. */
const probeMax = 1_000;

/** One for each state that is asked for: each walks its own index, and nothing has to be sorted but what is shown. */
export function selections(
  place: Place,
  query: SandboxesQuery,
  by: string | undefined,
): Selection[] {
  // Dead ones only where they are asked for.
  if (query.state === undefined) return [selection(place, query, by, undefined)];
  return [...new Set(query.state)].map((state) => selection(place, query, by, state));
}

function selection(
  place: Place,
  query: SandboxesQuery,
  by: string | undefined,
  state: string | undefined,
): Selection {
  const gone = state === "destroyed" ? 1 : 0;
  const where = ["s.view IS NOT NULL", "s.gone = ?"];
  const bindings: SqlValue[] = [gone];
  const add = (condition: string, ...values: SqlValue[]) => {
    where.push(condition);
    bindings.push(...values);
  };
  if (state !== undefined) add("s.state = ?", state);
  // Its own object has forgotten it by then, whether its row is still here or not.
  if (gone === 1) add("s.state_since > ?", place.clock() - limits.tombstoneMs);
  for (const part of ["repo", "branch", "config"] as const) {
    const wanted = query[`scope.${part}`];
    if (wanted !== undefined) add(`s.${part} = ?`, wanted);
  }
  if (query.mine === "1") add("s.made_by = ?", by ?? "");
  const [rarest, ...others] = rarestFirst(place, query.metadata.map(pairOf), gone);
  for (const { k, v } of others) {
    add("EXISTS (SELECT 1 FROM meta o WHERE o.id = s.id AND o.k = ? AND o.v = ?)", k, v);
  }
  if (rarest !== undefined) add("m.k = ? AND m.v = ? AND m.gone = ?", rarest.k, rarest.v, gone);
  const order = rarest === undefined ? "s" : "m";
  if (query.cursor !== undefined) {
    const [at = "", id = ""] = query.cursor.split(".");
    add(`(${order}.created_at, ${order}.id) < (?, ?)`, Number(at), id);
  }
  return {
    from: rarest === undefined ? `sandbox s INDEXED BY ${indexOf(query, state)}` : byMetadata,
    where: `${where.join(" AND ")} ORDER BY ${order}.created_at DESC, ${order}.id DESC LIMIT ?`,
    bindings,
  };
}

const byMetadata = "meta m INDEXED BY meta_value CROSS JOIN sandbox s ON s.id = m.id";

function indexOf(query: SandboxesQuery, state: string | undefined): string {
  if (query["scope.repo"] !== undefined) return "sandbox_scope";
  if (query.mine === "1") return "sandbox_made";
  return state === undefined ? "sandbox_list" : "sandbox_state";
}

function pairOf(text: string): Pair {
  const at = text.indexOf("=");
  return { k: text.slice(0, at), v: text.slice(at + 1) };
}

/** The walk goes by the pair that the fewest have. */
function rarestFirst(place: Place, pairs: Pair[], gone: number): Pair[] {
  if (pairs.length < 2) return pairs;
  const counted = pairs.map((pair) => {
    const [row] = place.sql<{ n: number }>(
      `SELECT count(*) AS n FROM
         (SELECT 1 FROM meta WHERE k = ? AND v = ? AND gone = ? LIMIT ${probeMax})`,
      pair.k,
      pair.v,
      gone,
    );
    return { pair, n: row?.n ?? 0 };
  });
  return counted.sort((a, b) => a.n - b.n).map(({ pair }) => pair);
}
