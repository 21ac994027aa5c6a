/** Rows of the verbs on templates. */
import { response, type Schemas, type VerbRow } from "./row.ts";

const all = "/v1/templates" as const;
const template = `${all}/:template` as const;

export const templateRows = (schemas: Schemas) =>
  ({
    buildTemplate: {
      method: "POST",
      path: all,
      summary: "Build a template by steps",
      description:
        "Returns at once. The steps run in a sandbox of their own, whose files become the next version of the name. A build that fails changes nothing of it.",
      example: {
        body: {
          name: "web",
          steps: [{ run: "echo built > built" }],
          start: "exec python3 -m http.server 8000",
          ready: { port: 8000 },
        },
      },
      right: "key",
      needs: "lifecycle",
      takesDisk: true,
      body: schemas.templateCallSchema,
      responses: { 202: response(schemas.templateSchema, "Its `build` has begun.") },
      errors: ["template_busy", "too_many", "unsupported", "not_found", "checkpoint_expired"],
    },
    listTemplates: {
      method: "GET",
      path: all,
      call: "templates",
      summary: "List the templates by name and tag",
      right: "key",
      needs: "read",
      responses: { 200: response(schemas.templatesSchema, "All templates.") },
    },
    getTemplate: {
      method: "GET",
      path: template,
      summary: "Get a template with its newest build, or wait for the end of that",
      example: { query: { waitMs: 10_000 } },
      right: "key",
      needs: "read",
      query: schemas.templateQuerySchema,
      responses: { 200: response(schemas.templateSchema, "The template now.") },
    },
    readTemplateLog: {
      method: "GET",
      path: `${template}/log`,
      summary: "Read the log of the newest build by cursor",
      example: { query: { after: 0, waitMs: 10_000 } },
      right: "key",
      needs: "read",
      query: schemas.templateLogQuerySchema,
      responses: { 200: response(schemas.templateLogSchema, "What was written after the cursor.") },
    },
    cancelTemplateBuild: {
      method: "POST",
      path: `${template}/cancel`,
      summary: "Cancel the build of a template",
      description:
        "A version that was built earlier stays. Cancelling a build that has ended succeeds.",
      right: "key",
      needs: "lifecycle",
      repeatable: true,
      responses: { 200: response(schemas.templateSchema, "The template now.") },
    },
    removeTemplate: {
      method: "DELETE",
      path: template,
      summary: "Remove a template",
      description:
        "Sandboxes that were created from it keep their files, also those that have not started yet.",
      right: "key",
      needs: "lifecycle",
      responses: { 200: response(schemas.templateSchema, "The template that was removed.") },
      errors: ["template_busy"],
    },
  }) as const satisfies Record<string, VerbRow>;
