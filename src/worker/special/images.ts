/** HTTP handlers of images: the engine of the machine keeps them, and these calls pass its answers on. */
import { type Env, readConfig } from "../../config.ts";
import { BerthError } from "../../protocol/errors.ts";
import {
  type Image,
  type Images,
  imageQuerySchema,
  importQuerySchema,
  pullCallSchema,
} from "../../protocol/image.ts";
import type { EngineAddress } from "../../runtime/engine.ts";
import * as engine from "../../runtime/engine-images.ts";
import { readBody } from "../http/body.ts";
import type { Handler } from "../http/context.ts";
import { readQuery } from "../http/query.ts";

export const list: Handler = async (c) => c.json(await listImages(c.env));

export const get: Handler = async (c) =>
  c.json(await findImage(c.env, readQuery(imageQuerySchema, c.req.url).reference));

export const pull: Handler = async (c) =>
  c.json(await engine.pullImage(engineOf(c.env), await readBody(c.req.raw, pullCallSchema)));

export const remove: Handler = async (c) =>
  c.json(
    await engine.removeImage(engineOf(c.env), readQuery(imageQuerySchema, c.req.url).reference),
  );

export const importArchive: Handler = async (c) => {
  const { name } = readQuery(importQuerySchema, c.req.url);
  return c.json(await engine.importImage(engineOf(c.env), name, c.req.raw.body));
};

export async function listImages(env: Env): Promise<Images> {
  return { images: await engine.listImages(engineOf(env)), nextCursor: null };
}

export function findImage(env: Env, reference: string): Promise<Image> {
  return engine.findImage(engineOf(env), reference);
}

function engineOf(env: Env): EngineAddress {
  const { engine: configured } = readConfig(env);
  if (configured !== undefined) return { baseUrl: configured.url, secret: configured.secret };
  throw new BerthError("unsupported", "This installation has the images of its deployment only.", {
    hint: "Name one of them in `image`, or add one to wrangler.toml and deploy.",
  });
}
