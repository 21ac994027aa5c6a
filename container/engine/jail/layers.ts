/**
 * Shows folders of the machine with the ids of one sandbox: what is stored for id 0 belongs to root inside. So stored
 * trees, snapshots and shared layers are the same for each sandbox, whichever range it has.
 */
import { mkdirSync } from "node:fs";
import type { IdRange } from "./id-range.ts";
import { mount, mountFlag, mountMapped, withFileIds } from "./kernel.ts";

export class MappedFolders {
  readonly #folder: string;
  readonly #user: number;
  readonly #first: number;
  #count = 0;

  /** `folder`: empty; it is hidden by what is mounted over it. `user`: a descriptor of the user namespace. */
  constructor(folder: string, user: number, { first }: IdRange) {
    this.#folder = folder;
    this.#first = first;
    this.#user = user;
    mount("tmpfs", folder, "tmpfs", mountFlag.noSuid | mountFlag.noDev, "mode=700,size=1m");
  }

  /** Returns the path at which the folder is mounted with the ids of the sandbox, without what is mounted below it. */
  map(folder: string): string {
    const target = this.empty();
    mountMapped(folder, target, this.#user);
    return target;
  }

  /** Mounts an overlay of mapped folders. */
  mountOverlay(target: string, flags: bigint, options: string): void {
    withFileIds(this.#first, () => mount("overlay", target, "overlay", flags, options));
  }

  /** An empty folder to mount on. */
  empty(): string {
    const path = `${this.#folder}/${this.#count++}`;
    mkdirSync(path);
    return path;
  }
}
