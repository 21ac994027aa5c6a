/**
 * Metadata as a caller sees it: one map with one version, changed and read as a whole. Changes that are refused for their
 * size are not part of a history.
 */
import type { Model } from "./check.ts";

export type MetadataInput =
  | { verb: "patch"; patch: Record<string, string | null>; ifMatch?: number }
  | { verb: "get" };
export type MetadataOutput =
  | { metadata: Record<string, string>; version: number }
  | { mismatch: true };

type State = { metadata: Record<string, string>; version: number };

export const metadataModel: Model<State, MetadataInput, MetadataOutput> = {
  first: { metadata: {}, version: 0 },
  key: textOf,
  step(state, input, output) {
    if (input.verb === "get") return output === undefined || same(state, output) ? [state] : [];
    const matches = input.ifMatch === undefined || input.ifMatch === state.version;
    if (output !== undefined && "mismatch" in output) return matches ? [] : [state];
    if (!matches) return output === undefined ? [state] : [];
    const metadata = merged(state.metadata, input.patch);
    const changed = textOf({ metadata, version: 0 }) !== textOf({ ...state, version: 0 });
    const next = { metadata, version: state.version + (changed ? 1 : 0) };
    return output === undefined || same(next, output) ? [next] : [];
  },
};

function merged(map: Record<string, string>, patch: Record<string, string | null>) {
  const pairs = Object.entries({ ...map, ...patch });
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => Boolean(pair[1])));
}

function same(state: State, output: MetadataOutput): boolean {
  return "metadata" in output && textOf(state) === textOf(output);
}

function textOf({ metadata, version }: State): string {
  return `${version} ${JSON.stringify(Object.entries(metadata).sort())}`;
}
