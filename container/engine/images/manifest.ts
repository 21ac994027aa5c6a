/** Reads manifests and configurations of images, which come from outside: nothing in them is trusted. */
import { z } from "zod";
import { BerthError } from "../../../src/protocol/errors.ts";
import { digestPattern } from "../../../src/protocol/fields/image-reference.ts";
import type { ImageFacts } from "../../../src/protocol/image.ts";
import { limits } from "../../../src/protocol/limits.ts";

const digestSchema = z.string().regex(digestPattern);

const descriptorSchema = z.object({
  mediaType: z.string().default(""),
  digest: digestSchema,
  size: z.int().min(0).max(limits.imageBytesMax),
});

const indexSchema = z.object({
  manifests: z.array(
    descriptorSchema.extend({
      platform: z.object({ architecture: z.string(), os: z.string() }).optional(),
    }),
  ),
});

const manifestSchema = z.object({
  config: descriptorSchema,
  layers: z.array(descriptorSchema).min(1).max(limits.imageLayersMax),
});

const list = z.array(z.string()).nullish();

const configSchema = z.object({
  architecture: z.string().optional(),
  rootfs: z.object({ diff_ids: z.array(digestSchema) }),
  config: z
    .object({
      Env: list,
      WorkingDir: z.string().nullish(),
      User: z.string().nullish(),
      Entrypoint: list,
      Cmd: list,
    })
    .nullish(),
});

export type Manifest = z.infer<typeof manifestSchema>;
export type ImageIndex = z.infer<typeof indexSchema>;
export type ImageConfig = { diffIds: string[]; facts: ImageFacts };

/** The name that registries give to the processor of this machine. */
export const architecture = process.arch === "x64" ? "amd64" : process.arch;

export function readManifest(name: string, text: string): Manifest | ImageIndex {
  const json = parseJson(name, text);
  const index = indexSchema.safeParse(json);
  if (index.success) return index.data;
  const manifest = manifestSchema.safeParse(json);
  if (manifest.success) return manifest.data;
  throw unreadable(name, manifest.error.issues[0]?.message ?? "it is not a manifest");
}

/** The manifest of an index for this machine. */
export function choosePlatform(name: string, { manifests }: ImageIndex) {
  const chosen =
    manifests.find(
      ({ platform }) => platform?.os === "linux" && platform.architecture === architecture,
    ) ??
    (manifests.length === 1 && manifests[0]?.platform === undefined ? manifests[0] : undefined);
  if (chosen !== undefined) return chosen;
  const offered = manifests.flatMap(({ platform }) =>
    platform === undefined ? [] : [`${platform.os}/${platform.architecture}`],
  );
  throw wrongArchitecture(name, offered.join(", ") || "none");
}

export function readConfig(name: string, text: string, layers: number): ImageConfig {
  const read = configSchema.safeParse(parseJson(name, text));
  if (!read.success) throw unreadable(name, read.error.issues[0]?.message ?? "bad configuration");
  const { rootfs, config, architecture: made } = read.data;
  if (made !== undefined && made !== architecture) throw wrongArchitecture(name, made);
  if (rootfs.diff_ids.length !== layers) {
    throw unreadable(name, `${layers} layers, but ${rootfs.diff_ids.length} digests of them`);
  }
  return { diffIds: rootfs.diff_ids, facts: factsOf(config ?? {}) };
}

function factsOf(config: NonNullable<z.infer<typeof configSchema>["config"]>): ImageFacts {
  const pairs = (config.Env ?? []).flatMap((entry): [string, string][] => {
    const equals = entry.indexOf("=");
    const envName = entry.slice(0, equals);
    return /^[A-Za-z_][A-Za-z0-9_]*$/.test(envName) ? [[envName, entry.slice(equals + 1)]] : [];
  });
  const { WorkingDir: cwd, User: user, Entrypoint: entrypoint, Cmd: cmd } = config;
  return {
    env: Object.fromEntries(pairs),
    ...(cwd ? { cwd } : {}),
    ...(user ? { user } : {}),
    ...(entrypoint ? { entrypoint } : {}),
    ...(cmd ? { cmd } : {}),
  };
}

function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unreadable(name, "it is not JSON");
  }
}

export function unreadable(name: string, why: string): BerthError {
  return new BerthError("bad_archive", `${name}: The image cannot be read: ${why}.`, {
    hint: "Nothing of it was kept. Build or push it again.",
    facts: { field: "reference" },
  });
}

function wrongArchitecture(name: string, offered: string): BerthError {
  const message = `${name}: The image is not for linux/${architecture} but for ${offered}.`;
  return new BerthError("unsupported", message, {
    hint: "Choose a tag that has this architecture.",
    facts: { field: "reference" },
  });
}
