/**
 * Makes random calls of each route, with values that its schema accepts, nearly accepts, or rejects.
 * Waits are short, and values that would make a call run for long are left out.
 */
import fc from "fast-check";
import { z } from "zod";
import { type VerbName, type VerbRow, verbs } from "../../src/protocol/verbs.ts";
import type { Sent } from "./attacked-server.ts";
import { type CallParts, goodCall, hasJsonBody } from "./routes.ts";

type Json = Record<string, unknown>;

const nasty = fc.constantFrom<unknown>(
  ...[null, true, false, 0, -1, 1.5, 1e308, -0, 2 ** 53],
  ...["", " ", "\0", "\ud800", "__proto__", "constructor", "../../etc/passwd", "%00"],
  ...["'; DROP TABLE sandbox; --", "$(id)", "\r\nSet-Cookie: a=b", "ü".repeat(300)],
  ...[[], {}, [[]], [null], { length: -1 }, { toString: 1 }, { "": "" }, "a".repeat(5000)],
);

/** Values of the form of a schema, and sometimes not: a stranger stands at each place of it. */
function near(schema: Json, defs: Json, depth = 0): fc.Arbitrary<unknown> {
  const wild = fc.oneof(
    { weight: 2, arbitrary: nasty },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  );
  const fit = depth > 6 ? fc.constant(null) : fitting(schema, defs, depth);
  return fc.oneof({ weight: 3, arbitrary: fit }, { weight: 1, arbitrary: wild });
}

function fitting(schema: Json, defs: Json, depth: number): fc.Arbitrary<unknown> {
  const { $ref, type, properties, items, additionalProperties } = schema;
  const inner = (part: unknown) => near((part ?? {}) as Json, defs, depth + 1);
  if (typeof $ref === "string")
    return fitting(defs[$ref.split("/").at(-1) ?? ""] as Json, defs, depth + 1);
  const options = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (options !== undefined)
    return fc.oneof(...options.map((option) => fitting(option, defs, depth + 1)));
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  if ("const" in schema) return fc.constant(schema.const);
  if (type === "boolean") return fc.boolean();
  // Short waits alone: a call that may hang for 25 s is right, and would be all that is tested.
  if (type === "integer" || type === "number")
    return fc.constantFrom(0, 1, 2, 5, 80, 1000, 1500, 3000);
  if (type === "array") return fc.array(inner(items), { maxLength: 4 });
  if (type === "object" && properties !== undefined) {
    const fields = Object.entries(properties as Json).map(([name, part]) => [name, inner(part)]);
    return fc.record(Object.fromEntries(fields), { requiredKeys: [] });
  }
  if (type === "object")
    return fc.dictionary(fc.string({ maxLength: 8 }), inner(additionalProperties), { maxKeys: 4 });
  return fc.oneof(
    fc.constantFrom("true", "echo a", "a", "main", "/workspace", "SIGTERM"),
    fc.string({ unit: "binary", maxLength: 20 }),
  );
}

/** `named` is there, and others are not: a call goes to either. */
export function randomCall(
  name: VerbName,
  id: string,
  plan: string,
  named: CallParts,
): fc.Arbitrary<Sent> {
  const toNobody = fc.constant(goodCall(name, id, plan));
  const toSomebody = fc.constant(goodCall(name, id, plan, named));
  return fc
    .oneof({ weight: 1, arbitrary: toNobody }, { weight: 4, arbitrary: toSomebody })
    .chain((good) => callNear(verbs[name], good));
}

/** Few things are strange at once: what is wrong everywhere is turned away at the first look. */
function callNear(route: VerbRow, good: Sent): fc.Arbitrary<Sent> {
  const [path = "", plain = ""] = good.path.split("?");
  const query = route.query === undefined ? fc.constant({}) : fieldsNear(route.query);
  return fc
    .record({
      query: fc.oneof(query, fewOf(query), fc.constant({})),
      body: bodyNear(route, good),
      headers: fc.oneof(fc.constant({}), fewOf(headersNear)),
    })
    .map(({ query, body, headers }) => ({
      method: good.method,
      path:
        path +
        queryOf({ ...Object.fromEntries(new URLSearchParams(plain)), ...(query as Json) }, route),
      headers: { ...good.headers, ...(isUpgrade(good) ? handshake : {}), ...headers },
      ...(body === undefined ? {} : { body }),
    }));
}

/** What may stand in a header at all. */
const word = fc.stringMatching(/^[!-~]{0,40}$/);

const headersNear = fc.record({
  "berth-lease": word,
  "berth-wait-ms": fc.oneof(word, fc.constantFrom("0", "5")),
  "idempotency-key": word,
  "if-match": word,
  "if-none-match": word,
  range: fc.oneof(word, fc.constantFrom("bytes=0-", "bytes=5-2", "bytes=-0", "bytes=0-0,1-1")),
  "last-event-id": word,
  accept: fc.oneof(word, fc.constantFrom("text/event-stream", "application/octet-stream")),
});

/** One or two of the fields of what was drawn. */
function fewOf<Fields>(drawn: fc.Arbitrary<Fields>): fc.Arbitrary<Json> {
  return drawn.chain((fields) => {
    const all = Object.entries((fields ?? {}) as Json);
    return fc
      .subarray(all, { maxLength: Math.min(2, all.length) })
      .map((few) => Object.fromEntries(few));
  });
}

/** Without it the runtime answers, and not Berth. */
const handshake = {
  connection: "Upgrade",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

function isUpgrade({ headers = {} }: Sent): boolean {
  return headers.upgrade === "websocket";
}

function bodyNear(route: VerbRow, { body: good }: Sent): fc.Arbitrary<Sent["body"]> {
  if (route.body === "bytes") return fc.oneof(fc.constant(good), fc.string({ maxLength: 200 }));
  if (!hasJsonBody(route)) return fc.constant(undefined);
  const drawn = fieldsNear(route.body as z.ZodType);
  const json = drawn.map((value) => JSON.stringify(value));
  const known = JSON.parse(String(good ?? "{}")) as Json;
  const changed = fewOf(drawn).map((few) => JSON.stringify({ ...known, ...few }));
  const cut = fc.tuple(json, fc.nat(60)).map(([text, length]) => text.slice(0, length));
  return fc.oneof(
    { weight: 3, arbitrary: json },
    { weight: 4, arbitrary: changed },
    { weight: 1, arbitrary: fc.constant(good) },
    { weight: 1, arbitrary: cut },
    { weight: 1, arbitrary: fc.json() },
  );
}

function fieldsNear(schema: z.ZodType): fc.Arbitrary<unknown> {
  const { $defs = {}, ...own } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
  }) as Json;
  return fitting(own, $defs as Json, 0);
}

function queryOf(fields: Json, { path }: VerbRow): string {
  // A wait for something that does not end is given up soon.
  const all = path.endsWith("/wait") ? { timeoutMs: 5, ...fields } : fields;
  const parts = Object.entries(all).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return `${encodeURIComponent(name)}=${encodeURIComponent(String(text).toWellFormed())}`;
  });
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}
