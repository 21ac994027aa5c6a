/** Keeps `.git/berth` small: removes objects that neither the last state, the index nor kept work needs. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Repository } from "./repository.ts";

/** Below this nothing is removed, however little of it is needed. */
const unprunedBytesMax = 256 * 1024 * 1024;
/** Where the size after the last pruning is stored. */
const markFile = "pruned-bytes";
/** Objects that another sync may be writing now. */
const freshFor = "1.hour.ago";

/** The bytes of packs and of single objects. */
export function measureStore({ berthDir }: Repository): number {
  const objects = join(berthDir, "objects");
  return measureFolder(join(objects, "pack")) + measureLoose(objects);
}

/** Prunes once the store has doubled since the last time. */
export async function pruneGrownStore(repository: Repository): Promise<void> {
  const objects = join(repository.berthDir, "objects");
  const bytes = measureFolder(join(objects, "pack"));
  if (bytes > Math.max(unprunedBytesMax, 2 * readMark(repository))) await pruneStore(repository);
}

export async function pruneStore(repository: Repository): Promise<void> {
  const { raw, berthDir } = repository;
  // Another process may do it at the same time; what fails now is done next time.
  const okCodes = [1, 128, 255];
  await raw.run(["repack", "-adq", "--window=0"], { okCodes });
  await raw.run(["prune", `--expire=${freshFor}`], { okCodes });
  const bytes = measureFolder(join(berthDir, "objects", "pack"));
  writeFileSync(join(berthDir, markFile), `${bytes}\n`);
}

function readMark({ berthDir }: Repository): number {
  try {
    return Number(readFileSync(join(berthDir, markFile), "utf8")) || 0;
  } catch {
    // Never pruned.
    return 0;
  }
}

function measureLoose(objects: string): number {
  const folders = list(objects).filter((name) => /^[0-9a-f]{2}$/.test(name));
  return folders.reduce((sum, name) => sum + measureFolder(join(objects, name)), 0);
}

function measureFolder(folder: string): number {
  const sizes = list(folder).map(
    (name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0,
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Not there yet.
    return [];
  }
}
