/** HTTP handlers of keys. Administrators alone get here: they belong to no tenant, and so have no caller. */
import { readConfig } from "../../config.ts";
import { type KeyCall, keyCallSchema, keyFileSchema, keyIdPattern } from "../../protocol/key.ts";
import { digestOf, forgetKeys, generateKey } from "../auth/keys.ts";
import { readBody } from "../http/body.ts";
import type { Handler } from "../http/context.ts";
import { keysObject, unwrap } from "../http/objects.ts";
import { invalidField } from "../http/validate.ts";

export const create: Handler = async (c) => {
  const call: KeyCall = await readBody(c.req.raw, keyCallSchema);
  const key = generateKey(readConfig(c.env).secret);
  const made = unwrap(await keysObject(c.env).create(call, digestOf(key)));
  return c.json({ ...made, key }, 201, { "cache-control": "no-store" });
};

export const list: Handler = async (c) => c.json({ keys: unwrap(await keysObject(c.env).list()) });

export const remove: Handler = async (c) => {
  const id = c.req.param("keyId" as never);
  if (!keyIdPattern.test(id)) {
    throw invalidField("keyId", "must be the id of a key, 16 hexadecimal digits");
  }
  unwrap(await keysObject(c.env).remove(id));
  forgetKeys(c.env);
  return c.body(null, 204);
};

export const replaceFile: Handler = async (c) => {
  const file = await readBody(c.req.raw, keyFileSchema);
  const keys = unwrap(await keysObject(c.env).replaceFile(file));
  forgetKeys(c.env);
  return c.json({ keys });
};
