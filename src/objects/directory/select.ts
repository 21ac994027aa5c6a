/** Chooses the index for each query of a list, so that the cost of a page does not grow with the number of sandboxes. */
import type { SandboxesQuery } from "../../protocol/directory.ts";
import { limits } from "../../protocol/limits.ts";
import type { ObjectHost, SqlValue } from "../shared/host.ts";

/** `where` ends with `LIMIT ?`, which the caller binds. */
type Selection = { from: string; where: string; bindings: SqlValue[] };

type MetadataPair = { k: string; v: string };

/** Enough to tell a rare pair from a common one. */
const probeMax = 1_000;

/** One selection for each requested state: each reads its own index, and only the shown rows are sorted. */
export function selections(
  host: ObjectHost,
  query: SandboxesQuery,
  by: string | undefined,
): Selection[] {
  // Destroyed sandboxes are listed only on request.
  if (query.state === undefined) return [selection(host, query, by, undefined)];
  return [...new Set(query.state)].map((state) => selection(host, query, by, state));
}

function selection(
  host: ObjectHost,
  query: SandboxesQuery,
  by: string | undefined,
  state: string | undefined,
): Selection {
  const destroyed = state === "destroyed" ? 1 : 0;
  const where = ["s.view IS NOT NULL", "s.gone = ?"];
  const bindings: SqlValue[] = [destroyed];
  const add = (condition: string, ...values: SqlValue[]) => {
    where.push(condition);
    bindings.push(...values);
  };
  if (state !== undefined) add("s.state = ?", state);
  // After this time the sandbox's object has forgotten it, even if the row is still here.
  if (destroyed === 1) add("s.state_since > ?", host.clock() - limits.tombstoneMs);
  for (const part of ["repo", "branch", "config"] as const) {
    const value = query[`scope.${part}`];
    if (value !== undefined) add(`s.${part} = ?`, value);
  }
  if (query.mine === "1") add("s.made_by = ?", by ?? "");
  const [rarest, ...others] = rarestFirst(host, query.metadata.map(pairOf), destroyed);
  for (const { k, v } of others) {
    add("EXISTS (SELECT 1 FROM meta o WHERE o.id = s.id AND o.k = ? AND o.v = ?)", k, v);
  }
  if (rarest !== undefined)
    add("m.k = ? AND m.v = ? AND m.gone = ?", rarest.k, rarest.v, destroyed);
  const order = rarest === undefined ? "s" : "m";
  if (query.cursor !== undefined) {
    const [createdAt = "", id = ""] = query.cursor.split(".");
    add(`(${order}.created_at, ${order}.id) < (?, ?)`, Number(createdAt), id);
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

function pairOf(text: string): MetadataPair {
  const split = text.indexOf("=");
  return { k: text.slice(0, split), v: text.slice(split + 1) };
}

/** The query reads the index of the rarest pair and filters by the others. */
function rarestFirst(host: ObjectHost, pairs: MetadataPair[], destroyed: number): MetadataPair[] {
  if (pairs.length < 2) return pairs;
  const counted = pairs.map((pair) => {
    const [row] = host.sql<{ n: number }>(
      `SELECT count(*) AS n FROM
         (SELECT 1 FROM meta WHERE k = ? AND v = ? AND gone = ? LIMIT ${probeMax})`,
      pair.k,
      pair.v,
      destroyed,
    );
    return { pair, n: row?.n ?? 0 };
  });
  return counted.sort((a, b) => a.n - b.n).map(({ pair }) => pair);
}
