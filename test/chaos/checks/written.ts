/**
 * Owns that no acknowledged write is lost, and that none is there that nobody made: metadata, files, versions.
 */
import { mayBe } from "../clients/files.ts";
import type { Write } from "../history.ts";
import type { Check } from "./check.ts";

export const metadataIsKept: Check = (history, truth) =>
  lost("metadata", history.metadata, (box, name) => {
    const seen = truth.sandboxes[box];
    // One that is gone as a whole is told elsewhere.
    return seen === undefined || seen === "gone" ? undefined : (seen.metadata[name] ?? "absent");
  });

export const filesAreKept: Check = (history, truth) =>
  lost("file", history.files, (box, name) => {
    const kept = truth.kept[box];
    return kept === undefined ? undefined : (kept.files[name] ?? "absent");
  });

/** Each change has a number of its own, none is undone, and of two under one condition one is refused. */
export const versionsGrow: Check = ({ versions }, truth) => {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const { box, version, ifMatch } of versions) {
    const name = `${box} version ${version}`;
    if (seen.has(name)) problems.push(`two changes became ${name}`);
    seen.add(name);
    if (ifMatch !== undefined && version !== ifMatch + 1) {
      problems.push(`a change of ${box} that depended on version ${ifMatch} became ${version}`);
    }
    const now = truth.sandboxes[box];
    if (now !== undefined && now !== "gone" && now.version < version) {
      problems.push(`${name} was answered, and it has ${now.version}`);
    }
  }
  return problems;
};

function lost(
  kind: string,
  writes: Write[],
  valueAt: (box: string, name: string) => string | undefined,
): string[] {
  const names = new Map(writes.map((write) => [`${write.box} ${write.name}`, write]));
  return [...names.values()].flatMap(({ box, name }) => {
    const value = valueAt(box, name);
    // Not looked at: that it did not settle is told elsewhere.
    if (value === undefined) return [];
    const allowed = mayBe(writes, box, name);
    return allowed.includes(value)
      ? []
      : [`${kind} ${name} of ${box} is ${value}, not ${allowed.join(" or ")}`];
  });
}
