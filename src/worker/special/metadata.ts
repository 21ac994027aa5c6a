/**
 * HTTP handlers of the metadata: its version travels as entity tag.
 */
import type { Context } from "hono";
import { BerthError } from "../../protocol/errors.ts";
import { type MetadataAnswer, metadataPatchSchema } from "../../protocol/metadata.ts";
import { readBody } from "../http/body.ts";
import type { ApiEnv, Handler } from "../http/context.ts";
import { ifMatch } from "../http/headers.ts";
import { sandboxObject, unwrap } from "../http/objects.ts";

export const get: Handler = async (c) => {
  const object = sandboxObject(c.env, c.req.param("id"));
  const result = await object.callVerb("getMetadata", c.get("caller"), {}, c.get("requestId"));
  return withTag(c, unwrap(result));
};

export const patch: Handler = async (c) => {
  const object = sandboxObject(c.env, c.req.param("id"));
  const version = ifMatch(c);
  const change = await readBody(c.req.raw, metadataPatchSchema);
  const args = { change, ifMatch: version };
  const result = await object.callVerb("patchMetadata", c.get("caller"), args, c.get("requestId"));
  return withTag(c, unwrap(result));
};

export const replace: Handler = async (c) => {
  const object = sandboxObject(c.env, c.req.param("id"));
  const version = ifMatch(c);
  if (version === undefined) {
    throw new BerthError("precondition_required", "Replacing metadata needs `If-Match`.", {
      hint: "Send the `ETag` of the version that you have read, or use PATCH.",
    });
  }
  const to = await readBody(c.req.raw, metadataPatchSchema);
  const args = { to, ifMatch: version };
  const result = await object.callVerb(
    "replaceMetadata",
    c.get("caller"),
    args,
    c.get("requestId"),
  );
  return withTag(c, unwrap(result));
};

function withTag(c: Context<ApiEnv>, metadata: MetadataAnswer): Response {
  c.header("etag", `"${metadata.version}"`);
  return c.json(metadata);
}
