/**
 * Reads from the headers which form of archive a call means. See src/protocol/file.ts for the media types.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { refuse } from "../server/fields.ts";
import type { Compression } from "./compression.ts";

const archiveTypes: Record<string, Compression> = {
  "application/x-tar": "none",
  "application/gzip": "gzip",
  "application/zstd": "zstd",
};

const known = Object.keys(archiveTypes).join(", ");

/** How the body of an upload is compressed. */
export function requestCompression({ headers }: Request): Compression {
  const type = (headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const compression = Object.hasOwn(archiveTypes, type) ? archiveTypes[type] : undefined;
  if (compression === undefined) {
    throw new BerthError("unsupported_type", `Content-Type must be one of ${known}.`, {
      facts: { field: "content-type" },
    });
  }
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    throw new BerthError("unsupported_type", "An archive must not have a Content-Encoding.", {
      hint: `Name the compression in Content-Type: ${known}.`,
      facts: { field: "content-encoding" },
    });
  }
  return compression;
}

/** Chooses the type of a download: the caller's favourite among the supported ones, a plain tar if any is accepted. */
export function negotiateType({ headers }: Request): { type: string; compression: Compression } {
  const [plain = ""] = Object.keys(archiveTypes);
  const accept = headers.get("accept") ?? "*/*";
  const preferences = accept.split(",").map((item) => {
    const [type = "", ...rest] = item.split(";").map((part) => part.trim().toLowerCase());
    const weight = rest.find((part) => part.startsWith("q="))?.slice(2) ?? "1";
    return { type, weight: Number(weight) };
  });
  const [best] = preferences
    .map(({ type, weight }) => ({
      type: /^(\*|application)\/\*$/.test(type) ? plain : type,
      weight,
    }))
    .filter(({ type, weight }) => Object.hasOwn(archiveTypes, type) && weight > 0)
    .sort((a, b) => b.weight - a.weight);
  const compression = best === undefined ? undefined : archiveTypes[best.type];
  if (best === undefined || compression === undefined)
    refuse("accept", `must name one of ${known}`);
  return { type: best.type, compression };
}
