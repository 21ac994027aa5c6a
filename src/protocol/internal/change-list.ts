/**
 * Collects the differences between two trees within a limit: the first paths of each kind, and the number of all. The
 * engine runs it in a process of its own, so it does not use the schema library.
 */
/** The limit for the text of all listed paths: a thousand long paths would be megabytes. */
const listedCharsMax = 256 * 1024;

export class ChangeList {
  readonly #listMax: number;
  readonly #firsts: Record<keyof Paths, SmallestPaths>;
  #bytes = 0;

  constructor(listMax: number) {
    this.#listMax = listMax;
    const firsts = () => new SmallestPaths(listMax);
    this.#firsts = { added: firsts(), modified: firsts(), deleted: firsts() };
  }

  /** Paths may come in any order. `bytes`: the size of a file in the newer tree. */
  add(kind: keyof Paths, path: string, bytes = 0): void {
    this.#firsts[kind].add(path);
    // A sparse file can claim more than a number holds.
    this.#bytes = Math.min(this.#bytes + bytes, Number.MAX_SAFE_INTEGER);
  }

  result() {
    const { added, modified, deleted } = this.#firsts;
    const paths = { added: added.sorted(), modified: modified.sorted(), deleted: deleted.sorted() };
    const counts = { added: added.count, modified: modified.count, deleted: deleted.count };
    const listed = listInTurn(paths, this.#listMax, listedCharsMax);
    return { ...listed, counts, bytes: this.#bytes };
  }
}

type Paths = Record<"added" | "modified" | "deleted", string[]>;

/** Takes paths of each kind in turn, so that many changes of one kind do not hide the others. */
export function listInTurn(paths: Paths, pathsMax: number, charsMax: number): Paths {
  const listed: Paths = { added: [], modified: [], deleted: [] };
  const openKinds = new Set(Object.keys(listed) as (keyof Paths)[]);
  let [pathsLeft, charsLeft] = [pathsMax, charsMax];
  while (openKinds.size > 0) {
    for (const kind of openKinds) {
      const path = paths[kind][listed[kind].length];
      if (path === undefined || pathsLeft === 0 || path.length > charsLeft) {
        openKinds.delete(kind);
        continue;
      }
      listed[kind].push(path);
      pathsLeft -= 1;
      charsLeft -= path.length;
    }
  }
  return listed;
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
