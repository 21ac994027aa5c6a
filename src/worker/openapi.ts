/**
 * Owns the OpenAPI document: made of the same table and schemas that serve and check the calls.
 */
import { z } from "zod";
import { type ErrorCode, errorBodySchema, errors } from "../protocol/errors.ts";
import { idempotencyKeySchema } from "../protocol/fields/idempotency.ts";
import { badBody } from "../protocol/verbs/verb.ts";
import { type Route, type RouteName, routes } from "../protocol/verbs.ts";
import { version } from "./version.ts";

type Json = Record<string, unknown>;

let made: Json | undefined;

/** Made once: nothing of it depends on the caller. */
export function openApi(): Json {
  made ??= make();
  return made;
}

function make(): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const name of Object.keys(routes) as RouteName[]) {
    const route: Route = routes[name];
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(name, route, schemas) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Berth",
      version,
      description: "Sandboxes for agents, CI jobs and people.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ key: [] }],
    paths,
    components: { schemas, securitySchemes: { key: { type: "http", scheme: "bearer" } } },
  };
}

function operation(name: string, route: Route, schemas: Json): Json {
  const responses: Json = {};
  // The one route without a body of its own is a WebSocket.
  if (Object.keys(route.answers).length === 0)
    responses[101] = { description: "It goes on as one." };
  for (const [status, { schema, meaning }] of Object.entries(route.answers)) {
    responses[status] =
      schema === "stream"
        ? { description: meaning, content: { "text/event-stream": {}, ...bytes } }
        : schema instanceof z.ZodNull
          ? { description: meaning }
          : content(meaning, refer(schema, "output", schemas));
  }
  for (const [status, codes] of byStatus(errorsOf(route))) {
    const meaning = codes.map((code) => `\`${code}\`: ${errors[code].meaning}`).join("\n\n");
    responses[String(status)] = content(meaning, refer(errorBodySchema, "output", schemas));
  }
  return {
    operationId: name,
    summary: route.summary,
    ...(route.right === undefined ? { security: [] } : {}),
    parameters: parametersOf(route),
    ...(route.body === undefined ? {} : { requestBody: { content: bodyOf(route.body, schemas) } }),
    responses,
  };
}

/** Beside its own: what the door refuses whoever asks, fields and bodies that the route does not have. */
function errorsOf({ method, right, body, errors: own }: Route): ErrorCode[] {
  if (right === undefined) return own;
  return [...own, "bad_request", ...(method !== "GET" && body === undefined ? badBody : [])];
}

function parametersOf(route: Route): Json[] {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, param]) => ({
    name: param,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const asked = route.query === undefined ? {} : inputSchema(route.query);
  const inQuery = Object.entries((asked.properties ?? {}) as Json).map(([name, schema]) => ({
    name,
    in: "query",
    schema,
  }));
  const key = { name: "Idempotency-Key", in: "header", schema: inputSchema(idempotencyKeySchema) };
  return [...inPath, ...inQuery, ...(route.keyed === true ? [key] : [])];
}

function bodyOf(body: z.ZodType | "bytes", schemas: Json): Json {
  return body === "bytes" ? bytes : json(refer(body, "input", schemas));
}

const bytes: Json = { "application/octet-stream": {} };

function inputSchema(schema: z.ZodType): Json {
  const made = z.toJSONSchema(schema, { io: "input", target: "draft-2020-12" }) as Json;
  return withoutId(made);
}

/** The schema goes below components once, under its own name. */
function refer(schema: z.ZodType, io: "input" | "output", schemas: Json): Json {
  const text = JSON.stringify(z.toJSONSchema(schema, { io, target: "draft-2020-12" }));
  const moved = text.replaceAll('"#/$defs/', '"#/components/schemas/');
  const { $defs, ...whole } = JSON.parse(moved) as Json & { $defs?: Json };
  for (const [id, part] of Object.entries($defs ?? {})) schemas[id] = withoutId(part as Json);
  const id = whole.id;
  if (typeof id !== "string") return whole;
  schemas[id] = withoutId(whole);
  return { $ref: `#/components/schemas/${id}` };
}

function withoutId({ id: _id, $schema: _dialect, ...rest }: Json): Json {
  return rest;
}

function byStatus(codes: ErrorCode[]): Map<number, ErrorCode[]> {
  const grouped = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const { status } = errors[code];
    grouped.set(status, [...new Set([...(grouped.get(status) ?? []), code])]);
  }
  return grouped;
}

function content(description: string, schema: Json): Json {
  return { description, content: json(schema) };
}

function json(schema: Json): Json {
  return { "application/json": { schema } };
}
