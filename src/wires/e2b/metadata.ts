/** Keeps what E2B's wire tells of a sandbox in its metadata, under names that its clients do not see. */
import type { Metadata } from "../../protocol/metadata.ts";
import { WireError } from "./errors.ts";

const prefix = "berth.e2b/";

export const wireKeys = {
  /** The template or snapshot that it was made of; its presence says that a client of this wire made it. */
  template: `${prefix}template`,
  /** A sandbox that only holds the files of a snapshot: of which sandbox. */
  snapshotOf: `${prefix}snapshot-of`,
  snapshotName: `${prefix}snapshot-name`,
} as const;

export function readMetadata(metadata: Metadata): Metadata {
  const own = Object.entries(metadata).filter(([key]) => !key.startsWith(prefix));
  return Object.fromEntries(own);
}

export function nameOf(metadata: Metadata): string | undefined {
  return metadata[wireKeys.snapshotName];
}

/** What Berth cannot keep is refused, with the name of the key. */
export function writeMetadata(given: unknown, own: Metadata): Metadata {
  const entries = Object.entries((given ?? {}) as Record<string, unknown>);
  for (const [key, value] of entries) {
    if (typeof value !== "string") throw new WireError(400, `metadata.${key} must be a text`);
    if (value === "") throw new WireError(400, `metadata.${key} must not be empty`);
    if (key.startsWith(prefix)) throw new WireError(400, `metadata.${key}: the name is reserved`);
  }
  return { ...(Object.fromEntries(entries) as Metadata), ...own };
}

/** The query of a list: percent-encoded twice within one value. */
export function readFilters(text: string | null): Metadata {
  const parts = (text ?? "").split("&").filter((part) => part !== "");
  return Object.fromEntries(
    parts.map((part) => {
      const equals = part.indexOf("=");
      if (equals < 1) throw new WireError(400, "metadata must be key=value pairs");
      return [decodeTwice(part.slice(0, equals)), decodeTwice(part.slice(equals + 1))];
    }),
  );
}

function decodeTwice(text: string): string {
  try {
    return decodeURIComponent(decodeURIComponent(text.replaceAll("+", " ")));
  } catch {
    throw new WireError(400, "metadata is not percent-encoded UTF-8");
  }
}
