/**
 * Owns writing small git objects without asking git: a process for each would cost more than all else of a sync.
 * Does not own reading, nor packs.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";

export type TreeEntry = { name: string; mode: "100644" | "40000"; id: string };

export class ObjectStore {
  readonly #folder: string;
  readonly #format: "sha1" | "sha256";

  constructor(folder: string, format: "sha1" | "sha256") {
    this.#folder = folder;
    this.#format = format;
  }

  blob(content: Buffer | string): string {
    return this.#write("blob", Buffer.from(content as string, "latin1"));
  }

  tree(entries: TreeEntry[]): string {
    // As git orders them: a folder as if its name ended with a slash.
    const key = ({ name, mode }: TreeEntry) => (mode === "40000" ? `${name}/` : name);
    const sorted = [...entries].sort((one, other) => (key(one) < key(other) ? -1 : 1));
    const parts = sorted.map(({ name, mode, id }) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`, "latin1"), Buffer.from(id, "hex")]),
    );
    return this.#write("tree", Buffer.concat(parts));
  }

  /** The same tree and parent are the same commit: it has no time of its own. */
  commit(tree: string, parent: string | undefined): string {
    const who = "berth <berth@localhost> 0 +0000";
    const parents = parent === undefined ? "" : `parent ${parent}\n`;
    const text = `tree ${tree}\n${parents}author ${who}\ncommitter ${who}\n\nA checkout\n`;
    return this.#write("commit", Buffer.from(text));
  }

  #write(kind: string, content: Buffer): string {
    const whole = Buffer.concat([Buffer.from(`${kind} ${content.byteLength}\0`), content]);
    const id = createHash(this.#format).update(whole).digest("hex");
    const folder = join(this.#folder, id.slice(0, 2));
    const path = join(folder, id.slice(2));
    if (existsSync(path)) return id;
    mkdirSync(folder, { recursive: true });
    const temporary = join(folder, `tmp_obj_${randomUUID()}`);
    writeFileSync(temporary, deflateSync(whole), { mode: 0o444 });
    renameSync(temporary, path);
    return id;
  }
}
