/** Rows of the verbs on the metadata of a sandbox. */
import { response, type Schemas, sandboxPath, type VerbRow } from "./row.ts";

const metadata = `${sandboxPath}/metadata` as const;

export const metadataRows = (schemas: Schemas) =>
  ({
    getMetadata: {
      method: "GET",
      path: metadata,
      call: "metadata",
      summary: "Get the metadata and its version",
      right: "read",
      responses: {
        200: response(schemas.metadataAnswerSchema, "The header `ETag` has the version too."),
      },
    },
    patchMetadata: {
      method: "PATCH",
      path: metadata,
      summary: "Set and remove keys in one step",
      description:
        "`null` and the empty string remove a key. With `If-Match` only this version is changed.",
      example: { body: { owner: "ci", stage: null } },
      right: "lifecycle",
      body: schemas.metadataPatchSchema,
      responses: { 200: response(schemas.metadataAnswerSchema, "The metadata after the change.") },
      errors: ["version_mismatch"],
    },
    replaceMetadata: {
      method: "PUT",
      path: metadata,
      summary: "Replace all metadata",
      description: "Needs `If-Match` with the version that is replaced.",
      example: { body: { owner: "ci" } },
      right: "lifecycle",
      body: schemas.metadataPatchSchema,
      responses: { 200: response(schemas.metadataAnswerSchema, "The metadata after the change.") },
      errors: ["version_mismatch", "precondition_required"],
    },
  }) as const satisfies Record<string, VerbRow>;
