/** Pulls one image: resolves its manifest, downloads the layers that are missing, unpacks them, then names the image. */
import { rmSync } from "node:fs";
import {
  type ImageReference,
  parseReference,
} from "../../../src/protocol/fields/image-reference.ts";
import { choosePlatform, type Manifest, readConfig, readManifest } from "./manifest.ts";
import { Registry, type RegistrySettings } from "./registry.ts";
import type { ImageStore, StoredImage } from "./store.ts";
import { unpackLayer } from "./unpack.ts";

export type PullProgress = { bytes: number; bytesTotal: number };

type PullOptions = {
  store: ImageStore;
  settings: RegistrySettings & { imageBytesMax: number };
  progress: PullProgress;
  signal: AbortSignal;
};

export async function pullImage(name: string, options: PullOptions): Promise<void> {
  const { store, settings, progress, signal } = options;
  const reference = parseReference(name) as ImageReference;
  const registry = new Registry(settings, reference, name, signal);
  const { manifest, digest } = await resolveManifest(registry, name, reference);
  const configText = await registry.smallBlob(manifest.config);
  const { diffIds, facts } = readConfig(name, configText, manifest.layers.length);
  const release = store.hold(diffIds);
  try {
    const missing = manifest.layers.flatMap((blob, index) => {
      const diffId = diffIds[index] ?? "";
      return store.hasLayer(diffId) ? [] : [{ blob, diffId }];
    });
    progress.bytesTotal = missing.reduce((sum, { blob }) => sum + blob.size, 0);
    for (const { blob, diffId } of missing) {
      const file = store.partial(blob.digest);
      await registry.download(blob, file, (bytes) => {
        progress.bytes += bytes;
      });
      const { imageBytesMax: bytesMax } = settings;
      try {
        await store.addLayer(diffId, (folder) =>
          unpackLayer(file, folder, { diffId, bytesMax, signal }),
        );
      } finally {
        rmSync(file, { force: true });
      }
    }
    store.name(name, toStored(store, { digest, diffIds, facts }));
  } finally {
    release();
  }
}

export function toStored(
  store: ImageStore,
  { digest, diffIds, facts }: { digest: string; diffIds: string[]; facts: StoredImage["facts"] },
): StoredImage {
  const bytes = diffIds.reduce((sum, diffId) => sum + store.bytesOf(diffId), 0);
  return { digest, layers: diffIds, facts, bytes };
}

async function resolveManifest(
  registry: Registry,
  name: string,
  { tag, digest }: ImageReference,
): Promise<{ manifest: Manifest; digest: string }> {
  const first = await registry.manifest(digest ?? tag ?? "latest");
  const read = readManifest(name, first.text);
  if ("layers" in read) return { manifest: read, digest: first.digest };
  const chosen = await registry.manifest(choosePlatform(name, read).digest);
  const manifest = readManifest(name, chosen.text);
  if ("layers" in manifest) return { manifest, digest: chosen.digest };
  throw new Error("an index of an index");
}
