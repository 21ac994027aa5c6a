/**
 * Collects the differences between two trees within a limit: the first paths of each kind, and the number of all. The
 * engine runs it in a process of its own, so it does not use the schema library.
 */
export const changeKinds = ["added", "modified", "deleted"] as const;
export type ChangeKind = (typeof changeKinds)[number];

/** The limit for the text of all listed paths: a thousand long paths would be megabytes. */
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

  /** Paths may come in any order. `bytes`: the size of a file in the newer tree. */
  add(kind: ChangeKind, path: string, bytes = 0): void {
    this.#firsts[kind].add(path);
    // A sparse file can claim more than a number holds.
    this.#bytes = Math.min(this.#bytes + bytes, Number.MAX_SAFE_INTEGER);
  }

  /** Takes paths of the kinds in turn, so that many of one kind do not hide another. */
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
    const [added = [], modified = [], deleted = []] = firsts.map(({ paths, takenCount }) =>
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

/** Keeps the smallest of all added paths, in the memory of twice as many. */
class SmallestPaths {
  readonly #max: number;
  #paths: string[] = [];
  #last: string | undefined;
  count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(path: string): void {
    this.count += 1;
    if (this.#max === 0 || (this.#last !== undefined && path > this.#last)) return;
    this.#paths.push(path);
    if (this.#paths.length < this.#max * 2) return;
    this.#paths = this.sorted();
    this.#last = this.#paths.at(-1);
  }

  sorted(): string[] {
    return this.#paths.sort().slice(0, this.#max);
  }
}
