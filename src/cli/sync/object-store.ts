/** Writes small git objects directly: a git process for each would cost more than the rest of a sync. */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";

export type ObjectFormat = "sha1" | "sha256";
export type TreeEntry = { name: string; mode: "100644" | "40000"; id: string };

export class ObjectStore {
  readonly #folder: string;
  readonly #format: ObjectFormat;

  constructor(folder: string, format: ObjectFormat) {
    this.#folder = folder;
    this.#format = format;
  }

  blob(content: Buffer | string): string {
    return this.#write("blob", Buffer.from(content as string, "latin1"));
  }

  tree(entries: TreeEntry[]): string {
    // git's order: a folder sorts as if its name ended with a slash.
    const key = ({ name, mode }: TreeEntry) => (mode === "40000" ? `${name}/` : name);
    const sorted = [...entries].sort((a, b) => (key(a) < key(b) ? -1 : 1));
    const parts = sorted.map(({ name, mode, id }) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`, "latin1"), Buffer.from(id, "hex")]),
    );
    return this.#write("tree", Buffer.concat(parts));
  }

  /** Without a time of its own, so that the same tree and parent make the same commit. */
  commit(tree: string, parent: string | undefined): string {
    const author = "berth <berth@localhost> 0 +0000";
    const parents = parent === undefined ? "" : `parent ${parent}\n`;
    const text = `tree ${tree}\n${parents}author ${author}\ncommitter ${author}\n\nA checkout\n`;
    return this.#write("commit", Buffer.from(text));
  }

  #write(kind: string, content: Buffer): string {
    const object = Buffer.concat([Buffer.from(`${kind} ${content.byteLength}\0`), content]);
    const id = createHash(this.#format).update(object).digest("hex");
    const folder = join(this.#folder, id.slice(0, 2));
    const path = join(folder, id.slice(2));
    if (existsSync(path)) return id;
    mkdirSync(folder, { recursive: true });
    const temporary = join(folder, `tmp_obj_${randomUUID()}`);
    writeFileSync(temporary, deflateSync(object), { mode: 0o444 });
    renameSync(temporary, path);
    return id;
  }
}
