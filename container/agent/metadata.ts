/**
 * Owns the answer to a metadata call: what the object tells goes into the copy, unless the copy is newer.
 * Does not own the file (metadata-copy.ts) nor what keys and values may be: the object holds the truth.
 */
import type { AgentMetadata } from "../../src/protocol/internal/agent.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { MetadataCopy } from "./metadata-copy.ts";
import { readJson } from "./server/body.ts";
import { callOf, numberOf, objectOf, textOf } from "./server/fields.ts";

/** JSON may write one byte as six; the rest is for quotes, commas and the version. */
const bodyBytesMax = 8 * limits.metadataBytesMax;

export async function answerMetadata(request: Request, copy: MetadataCopy): Promise<Response> {
  const told = readMetadata(await readJson(request, bodyBytesMax));
  return Response.json({ version: copy.follow(told) });
}

function readMetadata(value: unknown): AgentMetadata {
  const call = callOf(value, ["version", "metadata"]);
  const entries = Object.entries(objectOf(call.metadata, "metadata"));
  return {
    version: numberOf(call.version, "version", { min: 0, max: Number.MAX_SAFE_INTEGER }),
    metadata: Object.fromEntries(
      entries.map(([key, text]) => [key, textOf(text, `metadata.${key}`)]),
    ),
  };
}
