/** HTTP handlers of the metadata: its version travels as entity tag. */
import type { Context } from "hono";
import { BerthError } from "../../protocol/errors.ts";
import { type MetadataAnswer, metadataPatchSchema } from "../../protocol/metadata.ts";
import { readBody } from "../http/body.ts";
import type { ApiEnv, Handler } from "../http/context.ts";
import { ifMatch } from "../http/headers.ts";
import { sandboxCalls, unwrap } from "../http/objects.ts";

export const get: Handler = async (c) => {
  return withTag(c, unwrap(await sandboxCalls(c)("getMetadata", {})));
};

export const patch: Handler = async (c) => {
  const callVerb = sandboxCalls(c);
  const version = ifMatch(c);
  const change = await readBody(c.req.raw, metadataPatchSchema);
  return withTag(c, unwrap(await callVerb("patchMetadata", { change, ifMatch: version })));
};

export const replace: Handler = async (c) => {
  const callVerb = sandboxCalls(c);
  const version = ifMatch(c);
  if (version === undefined) {
    throw new BerthError("precondition_required", "Replacing metadata needs `If-Match`.", {
      hint: "Send the `ETag` of the version that you have read, or use PATCH.",
    });
  }
  const to = await readBody(c.req.raw, metadataPatchSchema);
  return withTag(c, unwrap(await callVerb("replaceMetadata", { to, ifMatch: version })));
};

function withTag(c: Context<ApiEnv>, metadata: MetadataAnswer): Response {
  c.header("etag", `"${metadata.version}"`);
  return c.json(metadata);
}
