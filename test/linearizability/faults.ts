/**
 * Faults of an object: each turns a correct history into one that no object that does one thing at a time could produce,
 * or returns nothing if it does not fit the history.
 */
import type { Operation } from "./check.ts";
import type { LeaseInput, LeaseOutput } from "./lease-model.ts";
import type { MetadataInput, MetadataOutput } from "./metadata-model.ts";

export type LeaseOperation = Operation<LeaseInput, LeaseOutput>;
export type MetadataOperation = Operation<MetadataInput, MetadataOutput>;

function isGrant(
  operation: LeaseOperation,
): operation is LeaseOperation & { output: { granted: number } } {
  return operation.output !== undefined && "granted" in operation.output;
}

/** Grants an acquire that started and ended between the grant and the release of another. */
export function doubleGrant(all: LeaseOperation[]): LeaseOperation[] | undefined {
  for (const grant of all.filter(isGrant)) {
    const ends = all.filter(
      ({ input }) => input.verb === "release" && input.who === grant.input.who,
    );
    const until = Math.min(...ends.map(({ call }) => call), Number.POSITIVE_INFINITY);
    const victim = all.find(
      ({ input, output, call, back }) =>
        input.verb === "acquire" &&
        output !== undefined &&
        "refused" in output &&
        call > grant.back &&
        back < until,
    );
    if (victim === undefined) continue;
    const granted = grant.output.granted + 0.5;
    return all.map((operation) =>
      operation === victim ? { ...operation, output: { granted } } : operation,
    );
  }
  return undefined;
}

export function sameFence(all: LeaseOperation[]): LeaseOperation[] | undefined {
  const grants = all.filter(isGrant);
  const [first] = grants;
  const other = grants.find(({ input }) => input.who !== first?.input.who);
  if (first === undefined || other === undefined) return undefined;
  const { output } = first;
  return all.map((operation) => (operation === other ? { ...operation, output } : operation));
}

/** Two effective changes cannot create the same version. */
export function lostUpdate(all: MetadataOperation[]): MetadataOperation[] | undefined {
  let version = 0;
  const changes = all.filter(({ input, output }) => {
    if (input.verb !== "patch" || output === undefined || !("version" in output)) return false;
    const changed = output.version > version;
    version = output.version;
    return changed;
  });
  const [, first, second] = changes;
  if (first?.output === undefined || second?.output === undefined) return undefined;
  if (!("version" in first.output) || !("version" in second.output)) return undefined;
  const output = { ...second.output, version: first.output.version };
  return all.map((operation) => (operation === second ? { ...operation, output } : operation));
}

export function staleRead(all: MetadataOperation[]): MetadataOperation[] | undefined {
  for (const read of all.filter(({ input, output }) => input.verb === "get" && output)) {
    const before = all.find(
      ({ input, output, back }) =>
        input.verb === "patch" &&
        output &&
        "version" in output &&
        output.version > 0 &&
        back < read.call,
    );
    if (before === undefined) continue;
    const output = { metadata: {}, version: 0 };
    return all.map((operation) => (operation === read ? { ...operation, output } : operation));
  }
  return undefined;
}
