/** The schemas of keys that are made and removed while the server runs. Only an administrator's key may call their verbs. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";
import { rightSchema, rights } from "./rights.ts";

export const tenantNameSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "must be lower-case letters, digits and `-`, at most 63");

export const keyNameSchema = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,62}$/,
    "must be lower-case letters, digits, `.`, `_` and `-`, at most 63",
  );

export const keyIdPattern = /^[0-9a-f]{16}$/;

const rightsSchema = z
  .array(rightSchema)
  .min(1)
  .max(rights.length)
  .refine((list) => new Set(list).size === list.length, "must name each right once");

export const keyCallSchema = component("KeyCall", {
  name: keyNameSchema.describe("Who has the key, such as `alice`; unique within the tenant."),
  tenant: tenantNameSchema.describe("Whose sandboxes the key is for."),
  rights: rightsSchema.default([...rights]).describe("What the key may do; everything by default."),
  ttlMs: wholeNumber(limits.keyTtlMinMs, limits.keyTtlMaxMs)
    .optional()
    .describe("Milliseconds until the key expires; never by default."),
});

export const keySchema = component("Key", {
  id: z.string().describe("The beginning of the key's SHA-256, in hex."),
  name: z.string(),
  tenant: z.string(),
  rights: z.array(rightSchema),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().optional(),
  lastUsedAt: z.iso.datetime().optional().describe("Exact to a minute; absent if never used."),
  source: z
    .enum(["api", "file", "session"])
    .describe("`file`: listed in the keys file of the server. `session`: a browser signed in."),
  signedInBy: z.string().optional().describe("Of a session: the id of the key that signed in."),
});

export const madeKeySchema = keySchema
  .extend({ key: z.string().describe("The key itself, shown only once.") })
  .meta({ id: "MadeKey" });

export const keysSchema = component("Keys", { keys: z.array(keySchema) });

const fileKeySchema = z.strictObject({
  name: keyNameSchema,
  tenant: tenantNameSchema,
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "must be the SHA-256 of the key, in hex"),
  rights: rightsSchema.default([...rights]),
  expiresAt: z.iso.datetime({ offset: true }).optional(),
});

export const keyFileSchema = component("KeyFile", {
  keys: z
    .array(fileKeySchema)
    .max(limits.fileKeysMax)
    .describe("All keys of the file: those that it no longer lists are removed."),
});

export type KeyCall = z.infer<typeof keyCallSchema>;
export type Key = z.infer<typeof keySchema>;
export type MadeKey = z.infer<typeof madeKeySchema>;
export type KeyFile = z.infer<typeof keyFileSchema>;
