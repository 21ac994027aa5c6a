/**
 * The files of a cgroup that count what one sandbox uses. They are opened before the jail hides them, for reading only:
 * a descriptor of a folder would lead to others.
 */
import { existsSync, openSync, readSync } from "node:fs";

/** The names of version 2 and of version 1. */
const files = {
  memory: ["memory.current", "memory.usage_in_bytes"],
  memoryMax: ["memory.max", "memory.limit_in_bytes"],
  memoryStat: ["memory.stat"],
  processesMax: ["pids.max"],
  processors: ["cpu.stat"],
  processorsMax: ["cpu.max"],
} as const;

type MeterName = keyof typeof files;

export class CgroupMeters {
  readonly #descriptors = new Map<MeterName, number>();
  readonly #buffer = Buffer.alloc(8192);

  /** `folders`: those of one sandbox, one for each hierarchy; none of them need exist. */
  constructor(folders: readonly string[]) {
    for (const [name, either] of Object.entries(files) as [MeterName, readonly string[]][]) {
      const paths = folders.flatMap((folder) => either.map((file) => `${folder}/${file}`));
      const path = paths.find((candidate) => existsSync(candidate));
      if (path !== undefined) this.#descriptors.set(name, openSync(path, "r"));
    }
  }

  /** Undefined: this machine does not count it. */
  read(name: MeterName): string | undefined {
    const descriptor = this.#descriptors.get(name);
    if (descriptor === undefined) return undefined;
    try {
      return this.#buffer.toString("latin1", 0, readSync(descriptor, this.#buffer, 0, 8192, 0));
    } catch {
      // The group has been removed: the sandbox ends.
      return undefined;
    }
  }
}
