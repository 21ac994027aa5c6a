/** Rows of the verbs on the images of one machine. All its tenants use them, so only an administrator changes them. */
import { limits } from "../limits.ts";
import { response, type Schemas, type VerbRow } from "./row.ts";

const all = "/v1/images";

export const imageRows = (schemas: Schemas) =>
  ({
    listImages: {
      method: "GET",
      path: all,
      call: "images",
      summary: "List the images of this machine, and the pulls",
      right: "key",
      needs: "read",
      responses: { 200: response(schemas.imagesSchema, "All images.") },
      errors: ["unsupported"],
    },
    getImage: {
      method: "GET",
      path: `${all}/find`,
      call: "image",
      summary: "Get one image, or the progress of its pull",
      example: { query: { reference: "registry.example.com/team/app:1.2" } },
      right: "key",
      needs: "read",
      query: schemas.imageQuerySchema,
      responses: { 200: response(schemas.imageSchema, "The image.") },
      errors: ["not_found", "unsupported"],
    },
    pullImage: {
      method: "POST",
      path: `${all}/pull`,
      summary: "Pull an image from a registry",
      description:
        "Continues an earlier pull that was cut, and joins one that runs. Digests are checked; layers that are there are not pulled again.",
      example: { body: { reference: "registry.example.com/team/app:1.2", waitMs: 20_000 } },
      right: "administrator",
      repeatable: true,
      takesDisk: true,
      body: schemas.pullCallSchema,
      responses: { 200: response(schemas.imageSchema, "Ready, or still `pulling`.") },
      errors: ["not_found", "unavailable", "too_many", "unsupported", "bad_archive"],
    },
    importImage: {
      method: "PUT",
      path: `${all}/import`,
      summary: "Import an image from a tar archive",
      description:
        "The archive is an OCI layout, what `docker save` writes, or a plain root file system.",
      example: { query: { name: "my-image:1" } },
      right: "administrator",
      query: schemas.importQuerySchema,
      takesDisk: true,
      body: "bytes",
      bodyBytesMax: limits.imageBytesMax,
      responseMs: limits.imageImportMs,
      responses: { 200: response(schemas.imageSchema, "The image.") },
      errors: ["bad_archive", "too_many", "unsupported"],
    },
    removeImage: {
      method: "DELETE",
      path: `${all}/find`,
      summary: "Remove the name of an image",
      description:
        "Its layers are removed when no name, sandbox or checkpoint needs them any more: what runs runs on.",
      example: { query: { reference: "my-image:1" } },
      right: "administrator",
      query: schemas.imageQuerySchema,
      responses: { 200: response(schemas.imageSchema, "The image whose name was removed.") },
      errors: ["not_found", "unavailable", "unsupported"],
    },
  }) as const satisfies Record<string, VerbRow>;
