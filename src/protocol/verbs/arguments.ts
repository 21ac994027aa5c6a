/** Splits the arguments of a verb's method into the parts of its call, as the row says, for SDK and Worker. */
import type { IdempotentOptions } from "./options.ts";
import type { VerbRow } from "./row.ts";

export type CallParts = {
  /** The process, session, terminal, checkpoint or port that the path names. */
  target: unknown;
  /** The fields of the query, as a query writes them. */
  query: Record<string, unknown>;
  body: unknown;
  headers: { [Name in keyof IdempotentOptions]: IdempotentOptions[Name] | undefined };
};

/** The name of the path parameter that is an argument, except the id of the sandbox. */
export function targetOf({ path }: VerbRow): string | undefined {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name);
  return names.find((name) => name !== "id");
}

/** `targetName`: the path parameter of the row, for callers that know it already. */
export function splitArguments(
  row: VerbRow,
  args: readonly unknown[],
  targetName: string | undefined = targetOf(row),
): CallParts {
  const rest = [...args];
  const target = targetName === undefined ? undefined : rest.shift();
  const argument = row.argument === undefined ? {} : { [row.argument]: rest.shift() };
  const isInQuery = "query" in row;
  const isInBody = !isInQuery && row.argument !== undefined;
  const body = isInBody ? argument : bodyOf(row, rest);
  const { lease, waitMs, wake, idempotencyKey, callId, ...fields } = (rest.shift() ?? {}) as Record<
    string,
    unknown
  > &
    IdempotentOptions;
  return {
    target,
    query: isInQuery ? inQuery({ ...argument, ...fields }) : {},
    body: isInBody ? { ...fields, ...argument } : body,
    headers: { lease, waitMs, wake, idempotencyKey, callId },
  };
}

function bodyOf(row: VerbRow, rest: unknown[]): unknown {
  if (!("body" in row)) return undefined;
  const body = rest.shift();
  return body === undefined && row.optionalBody === true ? {} : body;
}

/** A query says yes and no as `1` and `0`, and leaves out what is undefined. */
function inQuery(fields: Record<string, unknown>): Record<string, unknown> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [name, typeof value === "boolean" ? (value ? "1" : "0") : value]),
  );
}
