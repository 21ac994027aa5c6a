/** The OpenAPI document, derived from the table of verbs: the same rows and schemas serve and check the calls. */
import { z } from "zod";
import { type ErrorCode, errorBodySchema, errors } from "../../protocol/errors.ts";
import { idempotencyKeySchema } from "../../protocol/fields/id.ts";
import { leaseHeader, waitHeader } from "../../protocol/lease.ts";
import { limits } from "../../protocol/limits.ts";
import { leaseErrors, sandboxPath } from "../../protocol/verbs/row.ts";
import { type VerbRow, verbs } from "../../protocol/verbs.ts";
import { version } from "./version.ts";

type Json = Record<string, unknown>;

const pathParameters: Record<string, { description: string; example: string }> = {
  id: { description: "The id of the sandbox.", example: "k3v9q2m7x1c5b8n4tq0w8e2r" },
  checkpoint: {
    description: "The id of the checkpoint.",
    example: "k3v9q2m7x1c5b8n4tq0w8e2r.a1b2c3d4e5f6",
  },
  process: { description: "The id of the process.", example: "p8x2k4m6q1w3-z9y8x7w6" },
  session: { description: "The id of the session.", example: "main" },
  terminal: { description: "The id of the terminal.", example: "main" },
  port: { description: "The number of the port in the sandbox.", example: "8000" },
  template: {
    description: "The name of the template, with its tag if it has one.",
    example: "web:v2",
  },
  plan: { description: "The name of the plan.", example: "release-42" },
  key: { description: "The name of the member within its plan.", example: "frontend" },
  keyId: { description: "The id of the key.", example: "9f86d081884c7d65" },
  n: { description: "The number of the commit or rollback.", example: "7" },
};

let document: Json | undefined;

/** Built once: nothing in it depends on the caller. */
export function openApi(): Json {
  document ??= openApiOf(verbs);
  return document;
}

export function openApiOf(rows: Record<string, VerbRow>): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const [name, row] of Object.entries(rows)) {
    const path = row.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [row.method.toLowerCase()]: operation(name, row, schemas) };
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

function operation(name: string, row: VerbRow, schemas: Json): Json {
  const { summary, right, body, example } = row;
  return {
    operationId: name,
    summary,
    description: descriptionOf(row),
    ...(right === undefined ? { security: [] } : {}),
    parameters: parametersOf(row),
    ...(body === undefined
      ? {}
      : { requestBody: { content: bodyOf(body, example?.body, schemas) } }),
    responses: responsesOf(row, schemas),
  };
}

/** What the row says, and what follows from it: who may call, and what a repetition or somebody else's lease means. */
function descriptionOf({ description, right, gated, idempotent }: VerbRow): string {
  const sentences = [
    description,
    rightNeeded(right),
    gated === true ? "While somebody holds the lease, only its holder may call this." : undefined,
    idempotent === true ? "A repeated call with the same `Idempotency-Key` runs once." : undefined,
  ];
  return sentences.filter((sentence) => sentence !== undefined).join(" ");
}

function rightNeeded(right: VerbRow["right"]): string | undefined {
  if (right === undefined) return undefined;
  if (right === "administrator") return "Needs an administrator's key.";
  if (right === "key") return "Needs a key; a token is not enough.";
  const rights = typeof right === "string" ? [right] : right;
  return `Needs a key, or a token with the right \`${rights.join("` or `")}\`.`;
}

function responsesOf(row: VerbRow, schemas: Json): Json {
  const responses: Json = {};
  // Only WebSockets have no response of their own.
  if (Object.keys(row.responses).length === 0) {
    responses[101] = { description: "The connection is now a WebSocket." };
  }
  for (const [status, { schema, meaning }] of Object.entries(row.responses)) {
    responses[status] =
      schema === "stream"
        ? { description: meaning, content: { "text/event-stream": {}, ...bytes } }
        : schema === "none"
          ? { description: meaning }
          : content(meaning, refer(schema, "output", schemas));
  }
  for (const [status, codes] of byStatus(errorsOf(row))) {
    const meaning = codes.map((code) => `\`${code}\`: ${errors[code].meaning}`).join("\n\n");
    responses[String(status)] = content(meaning, refer(errorBodySchema, "output", schemas));
  }
  return responses;
}

/** The row's own errors, and those that follow from its path, its right, its body and where it runs. */
function errorsOf({
  method,
  path,
  right,
  query,
  body,
  gated,
  agent,
  takesDisk,
  errors: own = [],
}: VerbRow): ErrorCode[] {
  if (right === undefined) return own;
  const needsSandbox = path.startsWith(sandboxPath) && (agent === true || /^P/.test(method));
  return [
    ...own,
    ...(["unauthenticated", "forbidden", "bad_request"] as const),
    ...(path.includes(":") ? (["not_found", "unavailable"] as const) : []),
    ...(needsSandbox ? (["sandbox_destroyed"] as const) : []),
    ...(method === "GET" ? [] : bodyErrors),
    ...(method === "GET" || body === "bytes" ? [] : (["bad_json"] as const)),
    ...(gated === true ? leaseErrors : []),
    ...(takesDisk === true ? (["disk_full"] as const) : []),
    ...(agent === true ? (["operation_interrupted"] as const) : []),
    ...(agent === true && query !== undefined ? headErrors : []),
    ...(handlePath.test(path) ? (["stale_handle"] as const) : []),
  ];
}

const bodyErrors: ErrorCode[] = ["too_large", "unsupported_type", "body_timeout"];
/** The query of these calls is passed on to the agent. */
const headErrors: ErrorCode[] = ["url_too_long", "headers_too_large"];
const handlePath = /:(?:process|session|terminal)\b/;

function parametersOf({ path, query, gated, idempotent, example }: VerbRow): Json[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
    ...pathParameters[name],
  }));
  const fields = query === undefined ? {} : inputSchema(query);
  const required = (fields.required ?? []) as string[];
  const properties = (fields.properties ?? {}) as Record<string, Json>;
  const inQuery = Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    ...(required.includes(name) ? { required: true } : {}),
    description,
    schema,
    ...(example?.query?.[name] === undefined ? {} : { example: example.query[name] }),
  }));
  const key = {
    name: "Idempotency-Key",
    in: "header",
    description: "A name of your choice for this call.",
    schema: inputSchema(idempotencyKeySchema),
  };
  return [
    ...inPath,
    ...inQuery,
    ...(gated === true ? gateParameters : []),
    ...(idempotent === true ? [key] : []),
  ];
}

/** What every gated call takes. */
const gateParameters: Json[] = [
  {
    name: leaseHeader,
    in: "header",
    description: "The token of the lease that the caller holds.",
    schema: { type: "string" },
  },
  {
    name: waitHeader,
    in: "header",
    description: "How long the call may wait for a lease of its own, in ms.",
    schema: { type: "integer", minimum: 0, maximum: limits.waitMaxMs },
  },
  {
    name: "wake",
    in: "query",
    description: "`false`: the call does not start a container.",
    schema: { enum: ["true", "false", "1", "0"], default: "true" },
  },
];

function bodyOf(body: z.ZodType | "bytes", example: unknown, schemas: Json): Json {
  if (body === "bytes") return bytes;
  const schema = refer(body, "input", schemas);
  return { "application/json": { schema, ...(example === undefined ? {} : { example }) } };
}

const bytes: Json = { "application/octet-stream": {} };

function inputSchema(schema: z.ZodType): Json {
  return withoutId(z.toJSONSchema(schema, { io: "input", target: "draft-2020-12" }) as Json);
}

/** Adds the schema to the components under its id, and refers to it. */
function refer(schema: z.ZodType, io: "input" | "output", schemas: Json): Json {
  const text = JSON.stringify(z.toJSONSchema(schema, { io, target: "draft-2020-12" }));
  const moved = text.replaceAll('"#/$defs/', '"#/components/schemas/');
  const { $defs, ...root } = JSON.parse(moved) as Json & { $defs?: Json };
  for (const [id, part] of Object.entries($defs ?? {})) schemas[id] = withoutId(part as Json);
  const id = root.id;
  if (typeof id !== "string") return root;
  schemas[id] = withoutId(root);
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
