/**
 * Owns gathering what differs between two trees within a bound: the first paths of each kind, the others counted.
 * Does not own the schema (changes.ts): whoever walks trees takes this file without the library of schemas.
 */
export const changeKinds = ["added", "modified", "deleted"] as const;
export type ChangeKind = (typeof changeKinds)[number];

/** Of the text of all listed paths: names of up to 255 bytes in deep folders make a thousand of them megabytes. */
const listedCharsMax = 256 * 1024;

export class ChangeList {
  readonly #listMax: number;
  readonly #firsts: Record<ChangeKind, SmallestPaths>;
  #bytes = 0;

  constructor(listMax: number) {
    this.#listMax = listMax;
    const firsts = () => new SmallestPaths(listMax);
    this.#firsts = { added: firsts(), modified: firsts(), deleted: firsts() };
  }

  /** In any order. `bytes` of a file as it is in the newer tree. */
  add(kind: ChangeKind, path: string, bytes = 0): void {
    this.#firsts[kind].add(path);
    // A sparse file can claim more than a number holds.
    this.#bytes = Math.min(this.#bytes + bytes, Number.MAX_SAFE_INTEGER);
  }

  /** Each kind has its turn, so that many of one hide none of another. */
  result() {
    const firsts = changeKinds.map((kind) => ({
      paths: this.#firsts[kind].sorted(),
      takenCount: 0,
    }));
    let [left, chars] = [this.#listMax, listedCharsMax];
    for (let isMore = true; isMore; ) {
      isMore = false;
      for (const kind of firsts) {
        const path = kind.paths[kind.takenCount];
        if (path === undefined || left === 0 || path.length > chars) continue;
        [left, chars] = [left - 1, chars - path.length];
        kind.takenCount += 1;
        isMore = true;
      }
    }
    const [added = [], modified = [], deleted = []] = firsts.map(({ paths, taken: takenCount }) =>
      paths.slice(0, takenCount),
    );
    const counts = {
      added: this.#firsts.added.count,
      modified: this.#firsts.modified.count,
      deleted: this.#firsts.deleted.count,
    };
    return { added, modified, deleted, counts, bytes: this.#bytes };
  }
}

/** The smallest of all that were added, whatever their order, in the memory of twice as many. */
class SmallestPaths {
  readonly #max: number;
  #kept: string[] = [];
  #last: string | undefined;
  count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(path: string): void {
    this.count += 1;
    if (this.#max === 0 || (this.#last !== undefined && path > this.#last)) return;
    this.#kept.push(path);
    if (this.#kept.length < this.#max * 2) return;
    this.#kept = this.sorted();
    this.#last = this.#kept.at(-1);
  }

  sorted(): string[] {
    return this.#kept.sort().slice(0, this.#max);
  }
}
