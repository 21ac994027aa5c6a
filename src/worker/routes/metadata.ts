/**
 * Owns the routes of the metadata; the version travels as entity tag.
 */
import type { Context } from "hono";
import { BerthError } from "../../protocol/errors.ts";
import { type MetadataAnswer, metadataPatchSchema } from "../../protocol/metadata.ts";
import type { Door, Handler } from "../app.ts";
import { readBody } from "../http/body.ts";
import { objectOf, told } from "../http/operations.ts";
import { ifMatch } from "../http/query.ts";

export const get: Handler = async (c) =>
  tagged(c, told(await objectOf(c.env, c.req.param("id")).metadata(c.get("caller"))));

export const patch: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const version = ifMatch(c);
  const change = await readBody(c.req.raw, metadataPatchSchema);
  return tagged(c, told(await object.patchMetadata(c.get("caller"), change, version)));
};

export const replace: Handler = async (c) => {
  const object = objectOf(c.env, c.req.param("id"));
  const version = ifMatch(c);
  if (version === undefined) {
    throw new BerthError("precondition_required", "Replacing needs If-Match.", {
      hint: "Send the ETag of the version that you have seen; PATCH needs none.",
    });
  }
  const to = await readBody(c.req.raw, metadataPatchSchema);
  return tagged(c, told(await object.replaceMetadata(c.get("caller"), to, version)));
};

function tagged(c: Context<Door>, answer: MetadataAnswer): Response {
  c.header("etag", `"${answer.version}"`);
  return c.json(answer);
}
