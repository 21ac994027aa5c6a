/**
 * Owns which form of archive a call means, told by its headers, and the query of both calls.
 * Does not own the names: src/protocol/archive.ts has them; a test holds both together.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { type At, atOf, fieldsOf } from "../files/query.ts";
import { refuse } from "../server/fields.ts";
import type { Compression } from "./compression.ts";

export const archiveTypes: Record<string, Compression> = {
  "application/x-tar": "none",
  "application/gzip": "gzip",
  "application/zstd": "zstd",
};

const known = Object.keys(archiveTypes).join(", ");

export function readArchiveQuery(search: string): At {
  return atOf({ path: ".", ...fieldsOf(search, ["path", "session"]) });
}

/** Of what comes in. */
export function sentAs({ headers }: Request): Compression {
  const type = (headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const compression = Object.hasOwn(archiveTypes, type) ? archiveTypes[type] : undefined;
  if (compression === undefined) {
    throw new BerthError("unsupported_type", `Content-Type must be one of ${known}`, {
      facts: { field: "content-type" },
    });
  }
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    throw new BerthError("unsupported_type", "an archive is sent without Content-Encoding", {
      hint: `say how it is compressed by its Content-Type: ${known}`,
      facts: { field: "content-encoding" },
    });
  }
  return compression;
}

/** Of what goes out: what the caller likes best of what there is; plain where it is all the same. */
export function wantedAs({ headers }: Request): { type: string; compression: Compression } {
  const [plain = ""] = Object.keys(archiveTypes);
  const accept = headers.get("accept") ?? "*/*";
  const wishes = accept.split(",").map((wish) => {
    const [type = "", ...rest] = wish.split(";").map((part) => part.trim().toLowerCase());
    const weight = rest.find((part) => part.startsWith("q="))?.slice(2) ?? "1";
    return { type, weight: Number(weight) };
  });
  const [best] = wishes
    .map(({ type, weight }) => ({
      type: /^(\*|application)\/\*$/.test(type) ? plain : type,
      weight,
    }))
    .filter(({ type, weight }) => Object.hasOwn(archiveTypes, type) && weight > 0)
    .sort((one, other) => other.weight - one.weight);
  const compression = best === undefined ? undefined : archiveTypes[best.type];
  if (best === undefined || compression === undefined)
    refuse("accept", `must name one of ${known}`);
  return { type: best.type, compression };
}
