/** Imports an image from a tar archive: an OCI layout, what `docker save` writes, or a plain root file system. */

import { once } from "node:events";
import { createWriteStream, existsSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { BerthError } from "../../../src/protocol/errors.ts";
import { digestPattern } from "../../../src/protocol/fields/image-reference.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { type DataFolders, moveToTrash, temporaryFolder } from "../rootfs/folders.ts";
import { run } from "../run.ts";
import { hashFile, sha256 } from "./digest.ts";
import { choosePlatform, readConfig, readManifest, unreadable } from "./manifest.ts";
import { toStored } from "./pull.ts";
import type { ImageStore } from "./store.ts";
import { unpackLayer } from "./unpack.ts";

type ImportOptions = {
  store: ImageStore;
  folders: DataFolders;
  bytesMax: number;
  signal: AbortSignal;
};

type Layer = { file: string; diffId: string };

/** Returns when the image has its name. */
export async function importImage(
  name: string,
  body: ReadableStream<Uint8Array>,
  options: ImportOptions,
): Promise<void> {
  const { folders, bytesMax } = options;
  const folder = temporaryFolder(folders, "import");
  mkdirSync(folder, { mode: 0o700 });
  try {
    const archive = `${folder}/archive.tar`;
    await writeBody(body, archive, bytesMax);
    const names = await listNames(name, archive);
    if (names.has("oci-layout") && names.has("index.json"))
      await importLayout(name, archive, folder, options);
    else if (names.has("manifest.json")) await importSaved(name, archive, folder, options);
    else await importRoot(name, archive, options);
  } finally {
    moveToTrash(folders, folder);
  }
}

async function importLayout(name: string, archive: string, folder: string, options: ImportOptions) {
  const root = await extract(archive, folder, options);
  const blob = (digest: string) => inside(name, root, `blobs/${digest.replace(":", "/")}`);
  const read = (digest: string) => {
    const text = readFileSync(blob(digest), "utf8");
    if (sha256(text) !== digest) throw unreadable(name, `${digest} names other bytes`);
    return text;
  };
  let text = readFileSync(inside(name, root, "index.json"), "utf8");
  let manifest = readManifest(name, text);
  // The index of the layout may name an index with one manifest for each architecture.
  for (let depth = 0; "manifests" in manifest && depth < 3; depth += 1) {
    const [only] = manifest.manifests.length === 1 ? manifest.manifests : [];
    text = read((only ?? choosePlatform(name, manifest)).digest);
    manifest = readManifest(name, text);
  }
  if (!("layers" in manifest)) throw unreadable(name, "it has no manifest");
  const { diffIds, facts } = readConfig(name, read(manifest.config.digest), manifest.layers.length);
  const layers = manifest.layers.map(({ digest }, index) => ({
    file: blob(digest),
    diffId: diffIds[index] ?? "",
  }));
  await addImage(name, { digest: sha256(text), facts, layers }, options);
}

async function importSaved(name: string, archive: string, folder: string, options: ImportOptions) {
  const root = await extract(archive, folder, options);
  const saved = JSON.parse(readFileSync(inside(name, root, "manifest.json"), "utf8")) as {
    Config?: string;
    Layers?: string[];
  }[];
  const [{ Config, Layers } = {}] = Array.isArray(saved) ? saved : [];
  if (saved.length !== 1 || typeof Config !== "string" || !Array.isArray(Layers))
    throw unreadable(name, `manifest.json lists ${saved.length} images, not one`);
  if (Layers.length > limits.imageLayersMax) throw unreadable(name, "it has too many layers");
  const text = readFileSync(inside(name, root, Config), "utf8");
  const { diffIds, facts } = readConfig(name, text, Layers.length);
  const layers = Layers.map((path, index) => ({
    file: inside(name, root, path),
    diffId: diffIds[index] ?? "",
  }));
  await addImage(name, { digest: sha256(text), facts, layers }, options);
}

async function importRoot(name: string, archive: string, options: ImportOptions): Promise<void> {
  const diffId = await hashFile(archive);
  const layers = [{ file: archive, diffId }];
  await addImage(name, { digest: sha256(`root ${diffId}`), facts: { env: {} }, layers }, options);
}

async function addImage(
  name: string,
  {
    digest,
    facts,
    layers,
  }: { digest: string; facts: Parameters<typeof toStored>[1]["facts"]; layers: Layer[] },
  { store, bytesMax, signal }: ImportOptions,
): Promise<void> {
  const diffIds = layers.map(({ diffId }) => diffId);
  const release = store.hold(diffIds);
  try {
    for (const { file, diffId } of layers) {
      if (store.hasLayer(diffId)) continue;
      await store.addLayer(diffId, (folder) =>
        unpackLayer(file, folder, { diffId, bytesMax, signal }),
      );
    }
    store.name(name, toStored(store, { digest, diffIds, facts }));
  } finally {
    release();
  }
}

async function writeBody(
  body: ReadableStream<Uint8Array>,
  file: string,
  bytesMax: number,
): Promise<void> {
  const out = createWriteStream(file, { mode: 0o600 });
  let bytes = 0;
  try {
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > bytesMax) {
        throw new BerthError("too_large", `The archive is larger than ${bytesMax} bytes.`, {
          hint: "The operator can raise BERTH_ENGINE_IMAGE_BYTES_MAX.",
        });
      }
      if (!out.write(chunk)) await once(out, "drain");
    }
  } finally {
    await new Promise((resolve) => out.end(resolve));
  }
}

const listMs = 10 * 60_000;

async function listNames(name: string, archive: string): Promise<ReadonlySet<string>> {
  const argv = ["tar", "--list", `--file=${archive}`, "--occurrence=1"];
  const wanted = ["oci-layout", "index.json", "manifest.json"];
  const names = wanted.flatMap((entry) => [entry, `./${entry}`]);
  // tar fails for names that are not there, and says which ones are; a broken archive has none at all.
  const all = await run(["tar", "--list", `--file=${archive}`], {
    timeoutMs: listMs,
    outputBytesMax: 256,
  }).catch(() => {
    throw unreadable(name, "it is not a tar archive");
  });
  if (all === "") throw unreadable(name, "it is empty");
  const found = await Promise.all(
    names.map((entry) =>
      run([...argv, "--", entry], { timeoutMs: listMs }).then(
        () => [entry.replace("./", "")],
        () => [],
      ),
    ),
  );
  return new Set(found.flat());
}

/** Plain files only, readable by the engine: what layers hold is unpacked later. */
async function extract(archive: string, folder: string, { signal }: ImportOptions) {
  const root = `${folder}/unpacked`;
  mkdirSync(root, { mode: 0o700 });
  const flags = ["--no-same-owner", "--no-same-permissions", "--delay-directory-restore"];
  await run(["tar", "--extract", `--file=${archive}`, `--directory=${root}`, ...flags], {
    timeoutMs: listMs,
    signal,
  });
  return root;
}

/** A path of the archive; links may lead out of it. */
function inside(name: string, root: string, path: string): string {
  const isDigest =
    !path.startsWith("blobs/") || digestPattern.test(path.slice(6).replace("/", ":"));
  const file = `${root}/${path}`;
  if (!isDigest || path.includes("..") || !existsSync(file) || !realpathSync(file).startsWith(root))
    throw unreadable(name, `${path} is missing`);
  return file;
}
