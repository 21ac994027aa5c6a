/** Rows of the verbs on keys, for administrators. */
import { response, type Schemas, type VerbRow } from "./row.ts";

const all = "/v1/keys" as const;

export const keyRows = (schemas: Schemas) =>
  ({
    createKey: {
      method: "POST",
      path: all,
      summary: "Create a key for a tenant",
      description: "It works at once, without a restart or a deploy.",
      example: { body: { name: "alice", tenant: "acme", ttlMs: 7_776_000_000 } },
      right: "administrator",
      body: schemas.keyCallSchema,
      responses: { 201: response(schemas.madeKeySchema, "The key is shown only once.") },
      errors: ["name_taken", "too_many"],
    },
    listKeys: {
      method: "GET",
      path: all,
      summary: "List the keys of all tenants, by tenant and name",
      description: "Those of the variable BERTH_API_KEYS are not listed.",
      right: "administrator",
      responses: { 200: response(schemas.keysSchema, "All keys, without the keys themselves.") },
    },
    removeKey: {
      method: "DELETE",
      path: `${all}/:keyId`,
      summary: "Remove a key and end what it has open",
      description:
        "Within seconds it is refused, as are tokens that it created, and its streams and WebSockets end.",
      right: "administrator",
      repeatable: true,
      responses: { 204: response("none", "The key is removed, or there was none.") },
    },
    replaceFileKeys: {
      method: "PUT",
      path: all,
      summary: "Replace the keys that come from a file",
      description: "Keys that were created by a call stay.",
      example: { body: { keys: [{ name: "bob", tenant: "acme", sha256: "0".repeat(64) }] } },
      right: "administrator",
      repeatable: true,
      body: schemas.keyFileSchema,
      responses: { 200: response(schemas.keysSchema, "All keys now.") },
      errors: ["name_taken"],
    },
  }) as const satisfies Record<string, VerbRow>;
