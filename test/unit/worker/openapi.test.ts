import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { type VerbRow, verbs } from "../../../src/protocol/verbs.ts";
import { openApi } from "../../../src/worker/http/openapi.ts";

type Json = Record<string, Record<string, Record<string, unknown>>>;

describe("the OpenAPI document", () => {
  it("[W8] is valid and describes every route, its form and its errors", async () => {
    const document = openApi();
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    const paths = document.paths as Json;
    for (const route of Object.values(verbs) as VerbRow[]) {
      const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
      const operation = paths[path]?.[route.method.toLowerCase()];
      expect(operation, path).toBeDefined();
      expect(operation?.requestBody !== undefined, path).toBe(route.body !== undefined);
    }
    const events = paths["/v1/events"]?.get as { parameters: object[] } | undefined;
    expect(events?.parameters).toContainEqual({
      ...{ name: "limit", in: "query" },
      description: expect.any(String),
      schema: { type: "integer", minimum: 1, maximum: 1000, default: 100 },
      example: 50,
    });
    expect(JSON.stringify(document)).toContain('"#/components/schemas/ExecCall"');
    expect(JSON.stringify(document)).not.toContain("$defs");
  });
});

describe("the table of verbs", () => {
  it("[W8] has an example that is valid for each verb that takes fields", () => {
    for (const [name, { query, body, example }] of Object.entries(
      verbs as Record<string, VerbRow>,
    )) {
      if (body !== undefined && body !== "bytes") {
        expect(body.safeParse(example?.body).error, name).toBeUndefined();
      }
      if (query === undefined || example?.body !== undefined) continue;
      const fields = Object.entries(example?.query ?? {});
      expect(fields, name).not.toEqual([]);
      const written = Object.fromEntries(fields.map(([field, value]) => [field, String(value)]));
      expect(query.safeParse(written).error, name).toBeUndefined();
    }
  });
});
