/**
 * The images of one machine. A layer is unpacked once and shared; a reference names a manifest; and a manifest stays as
 * long as a reference names it or a sandbox or saved tree stands on it.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { BerthError } from "../../../src/protocol/errors.ts";
import type { Image, ImageFacts } from "../../../src/protocol/image.ts";
import { type DataFolders, moveToTrash, temporaryFolder } from "../rootfs/folders.ts";

export type StoredImage = {
  /** The digest of its manifest. */
  digest: string;
  /** The digests of its unpacked layers, lowest first. */
  layers: string[];
  facts: ImageFacts;
  /** The size of the unpacked layers. */
  bytes: number;
};

type NameEntry = { digest: string; at: string };

export class ImageStore {
  readonly #folders: DataFolders;
  readonly #base: string;
  #names: Record<string, NameEntry>;
  /** Manifests that a pull is about to name: they are not collected. */
  readonly #wanted = new Map<string, number>();

  constructor(folders: DataFolders) {
    this.#folders = folders;
    this.#base = folders.images;
    for (const name of ["layers", "manifests", "users", "partial"])
      mkdirSync(`${this.#base}/${name}`, { recursive: true, mode: 0o700 });
    const file = `${this.#base}/names.json`;
    this.#names = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
    this.collect();
  }

  /** The file of a download, which a later try continues. */
  partial(digest: string): string {
    return `${this.#base}/partial/${hexOf(digest)}`;
  }

  layer(diffId: string): string {
    return `${this.#base}/layers/${hexOf(diffId).slice(0, layerNameChars)}`;
  }

  hasLayer(diffId: string): boolean {
    return existsSync(this.layer(diffId));
  }

  /** Unpacks into a temporary folder, which becomes the layer at once or not at all. */
  async addLayer(diffId: string, unpack: (folder: string) => Promise<number>): Promise<void> {
    const folder = temporaryFolder(this.#folders, "layer");
    mkdirSync(folder, { mode: 0o755 });
    try {
      const bytes = await unpack(folder);
      if (this.hasLayer(diffId)) return moveToTrash(this.#folders, folder);
      this.#write(`layer-bytes-${hexOf(diffId)}.json`, bytes);
      renameSync(folder, this.layer(diffId));
    } catch (error) {
      moveToTrash(this.#folders, folder);
      throw error;
    }
  }

  /** Keeps layers and manifest until the returned function is called, although nothing names them yet. */
  hold(layers: readonly string[]): () => void {
    for (const layer of layers) this.#wanted.set(layer, (this.#wanted.get(layer) ?? 0) + 1);
    return () => {
      for (const layer of layers) {
        const count = (this.#wanted.get(layer) ?? 1) - 1;
        if (count > 0) this.#wanted.set(layer, count);
        else this.#wanted.delete(layer);
      }
    };
  }

  bytesOf(diffId: string): number {
    const file = `${this.#base}/layer-bytes-${hexOf(diffId)}.json`;
    return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : 0;
  }

  /** Names an image whose layers are all there. */
  name(reference: string, image: StoredImage): void {
    this.#write(`manifests/${hexOf(image.digest)}.json`, image);
    this.#names[reference] = { digest: image.digest, at: new Date().toISOString() };
    this.#write("names.json", this.#names);
    this.collect();
  }

  unname(reference: string): void {
    if (this.#names[reference] === undefined) throw unknownImage(reference);
    delete this.#names[reference];
    this.#write("names.json", this.#names);
    this.collect();
  }

  list(): Image[] {
    return Object.keys(this.#names)
      .sort()
      .map((reference) => this.view(reference));
  }

  view(reference: string): Image {
    const entry = this.#names[reference];
    const stored = entry === undefined ? undefined : this.find(entry.digest);
    if (entry === undefined || stored === undefined) throw unknownImage(reference);
    const { digest, bytes, layers, facts } = stored;
    const inUse = this.#users().filter((user) => this.#usedBy(user) === digest).length;
    const state = "ready" as const;
    return {
      reference,
      state,
      digest,
      pulledAt: entry.at,
      bytes,
      layers: layers.length,
      inUse,
      facts,
    };
  }

  /** By the digest of its manifest. */
  find(digest: string): StoredImage | undefined {
    const file = `${this.#base}/manifests/${hexOf(digest)}.json`;
    return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
  }

  /** `user`: the id of a sandbox or of a saved tree. Written before its files are. */
  use(user: string, digest: string): void {
    if (this.#usedBy(user) === digest) return;
    if (this.find(digest) === undefined) throw missingImage(digest);
    this.#write(`users/${user}`, digest);
  }

  /** A saved tree stands on what its sandbox stands on. */
  copyUse(from: string, to: string): void {
    const digest = this.#usedBy(from);
    if (digest !== undefined) this.use(to, digest);
  }

  release(user: string): void {
    if (this.#usedBy(user) === undefined) return;
    rmSync(`${this.#base}/users/${user}`, { force: true });
    this.collect();
  }

  /** Removes manifests that nothing names or uses, and layers of no manifest. */
  collect(): void {
    const used = new Set([
      ...Object.values(this.#names).map(({ digest }) => digest),
      ...this.#users().map((user) => this.#usedBy(user)),
    ]);
    const layers = new Set([...this.#wanted.keys()].map((layer) => this.layer(layer)));
    for (const file of readdirSync(`${this.#base}/manifests`)) {
      const image = this.find(`sha256:${file.replace(".json", "")}`);
      if (image !== undefined && used.has(image.digest))
        for (const layer of image.layers) layers.add(this.layer(layer));
      else rmSync(`${this.#base}/manifests/${file}`, { force: true });
    }
    for (const name of readdirSync(`${this.#base}/layers`)) {
      const folder = `${this.#base}/layers/${name}`;
      if (!layers.has(folder)) moveToTrash(this.#folders, folder);
    }
  }

  #users(): string[] {
    return readdirSync(`${this.#base}/users`);
  }

  #usedBy(user: string): string | undefined {
    const file = `${this.#base}/users/${user}`;
    return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
  }

  #write(name: string, value: unknown): void {
    const file = `${this.#base}/${name}`;
    const temporary = temporaryFolder(this.#folders, "image");
    writeFileSync(temporary, JSON.stringify(value), { mode: 0o600 });
    renameSync(temporary, file);
  }
}

/** Short, because the options of a mount have 4 KiB for the paths of all layers. 96 bits of a digest. */
const layerNameChars = 24;

function hexOf(digest: string): string {
  return digest.slice("sha256:".length);
}

function unknownImage(reference: string): BerthError {
  return new BerthError("not_found", `image: There is no image ${reference} on this machine.`, {
    hint: "`berth image list` shows those that are there; `berth image pull` gets another one.",
    facts: { field: "image" },
  });
}

function missingImage(digest: string): BerthError {
  return new BerthError("start_failed", `The image ${digest} is not on this machine any more.`, {
    hint: "Pull it again by its digest.",
    facts: { field: "image" },
  });
}
