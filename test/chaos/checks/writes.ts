/** Checks that no acknowledged write is lost and that no value exists that nobody wrote: metadata, files, versions. */
import { possibleValues } from "../clients/files.ts";
import type { Check } from "../final-state.ts";
import type { Write } from "../history.ts";

export const metadataIsKept: Check = (history, finalState) =>
  lostWrites("metadata", history.metadata, (sandboxId, name) => {
    const seen = finalState.sandboxes[sandboxId];
    // Another check reports a missing sandbox.
    return seen === undefined || seen === "gone" ? undefined : (seen.metadata[name] ?? "absent");
  });

export const filesAreKept: Check = (history, finalState) =>
  lostWrites("file", history.files, (sandboxId, name) => {
    const kept = finalState.contents[sandboxId];
    return kept === undefined ? undefined : (kept.files[name] ?? "absent");
  });

/** Each change has its own version, none is undone, and of two conditional changes on one version one is refused. */
export const versionsGrow: Check = ({ versions }, finalState) => {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const { sandboxId, version, ifMatch } of versions) {
    const name = `${sandboxId} version ${version}`;
    if (seen.has(name)) problems.push(`two changes became ${name}`);
    seen.add(name);
    if (ifMatch !== undefined && version !== ifMatch + 1) {
      problems.push(
        `a change of ${sandboxId} that depended on version ${ifMatch} became ${version}`,
      );
    }
    const now = finalState.sandboxes[sandboxId];
    if (now !== undefined && now !== "gone" && now.version < version) {
      problems.push(`${name} was acknowledged, but it has ${now.version}`);
    }
  }
  return problems;
};

function lostWrites(
  kind: string,
  writes: Write[],
  valueAt: (sandboxId: string, name: string) => string | undefined,
): string[] {
  const names = new Map(writes.map((write) => [`${write.sandboxId} ${write.name}`, write]));
  return [...names.values()].flatMap(({ sandboxId, name }) => {
    const value = valueAt(sandboxId, name);
    // The sandbox was not read; another check reports that it did not settle.
    if (value === undefined) return [];
    const allowed = possibleValues(writes, sandboxId, name);
    return allowed.includes(value)
      ? []
      : [`${kind} ${name} of ${sandboxId} is ${value}, not ${allowed.join(" or ")}`];
  });
}
