/**
 * Owns what holds for the query of every route: UTF-8, each field once, none that the route does not have.
 * Does not own the values of fields, nor the names where the route has a schema for them.
 */
import { type Route, type RouteName, routes } from "../../protocol/verbs.ts";
import { bad } from "./query.ts";

/** Of routes without a schema of their own; `wake` belongs to every gated one. */
const flags: Partial<Record<RouteName, readonly string[]>> = {
  createSandbox: ["force"],
  destroySandbox: ["force"],
  pauseSandbox: ["force", "discardFiles"],
  releaseLease: ["force", "break", "reason"],
  connectLease: ["holder", "ct"],
};

/** A filter may be given again, each time for another key. */
const repeatable: Partial<Record<RouteName, string>> = { listSandboxes: "metadata" };

export function checkQuery(name: RouteName, search: string): void {
  if (search.length < 2) return;
  const { query, gated }: Route = routes[name];
  const known = [...(flags[name] ?? []), ...(gated === true ? ["wake"] : [])];
  const seen = new Set<string>();
  for (const [field] of fieldsOf(search)) {
    if (query === undefined && !known.includes(field)) {
      throw bad(field, "is not a field of this call");
    }
    if (seen.has(field) && repeatable[name] !== field) throw bad(field, "must be given once");
    seen.add(field);
  }
}

/** Bytes that are no UTF-8 name nothing that could be meant: they are refused, and not replaced. */
export function fieldsOf(search: string): [name: string, value: string][] {
  const parts = search.replace(/^\?/, "").split("&");
  return parts
    .filter((part) => part !== "")
    .map((part) => {
      const equals = part.indexOf("=");
      const name = decoded(equals < 0 ? part : part.slice(0, equals), "query");
      return [name, equals < 0 ? "" : decoded(part.slice(equals + 1), name)];
    });
}

function decoded(text: string, field: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw bad(field, "must be UTF-8, percent-encoded");
  }
}
