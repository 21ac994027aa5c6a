/** Handles a metadata call: writes the object's metadata into the copy, unless the copy is newer. */
import type { AgentMetadata } from "../../src/protocol/internal/agent.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { MetadataCopy } from "./metadata-copy.ts";
import { readJson } from "./server/body.ts";

/** JSON may write one byte as six; the rest is for quotes, commas and the version. */
const bodyBytesMax = 8 * limits.metadataBytesMax;

export async function handleMetadata(request: Request, copy: MetadataCopy): Promise<Response> {
  const metadata = await readJson<AgentMetadata>(request, bodyBytesMax);
  return Response.json({ version: copy.update(metadata) });
}
