/**
 * Owns reading a body: type, size, time, encoding, and of JSON the schema of its route; a bad field is named.
 * Does not own what the fields mean.
 */
import { z } from "zod";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { VerbRow } from "../../protocol/verbs/row.ts";
import { invalidField, validate } from "./validate.ts";

export async function readBody<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
): Promise<z.infer<Schema>> {
  const text = await readText(request);
  return validate(schema, text === "" ? {} : parseJson(text));
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

const nothingSchema = z.strictObject({});

/** Of a call that takes no body: none, or an object without fields, as some programs send always. */
export async function readNothing(request: Request): Promise<void> {
  if (request.body !== null) await readBody(request, nothingSchema);
}

/** The body of an RPC method, which is an argument already. */
export function readMethodBody({ body, bodyBytesMax = 0 }: VerbRow, value: unknown): unknown {
  if (body === undefined) return undefined;
  if (body !== "bytes") return validate(body, value);
  if (!(value instanceof Uint8Array)) throw invalidField("bytes", "must be a Uint8Array");
  if (value.length > bodyBytesMax) throw tooLarge(bodyBytesMax);
  return value;
}

/** Bytes as they are. */
export async function readBytes(
  request: Request,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const { headers } = request;
  if (isNone(request)) return new Uint8Array(0);
  checkType(headers, "application/octet-stream", headers.has("content-type"));
  return readWhole(request, bytesMax);
}

async function readText(request: Request): Promise<string> {
  const { headers } = request;
  if (isNone(request)) return "";
  // And chunks that are none need no type.
  const mayBeNone = !headers.has("content-length") && !headers.has("content-type");
  checkType(headers, "application/json", !mayBeNone);
  const bytes = await readWhole(request, limits.bodyBytesMax);
  if (bytes.byteLength === 0) return "";
  if (mayBeNone) checkType(headers, "application/json", true);
  try {
    return utf8.decode(bytes);
  } catch {
    throw new BerthError("bad_json", "The body is not UTF-8.");
  }
}

/** A POST of `fetch` without a body says so. Where a length is told there is one: to ask for it makes a stream of it. */
function isNone(request: Request): boolean {
  const length = request.headers.get("content-length");
  return length === "0" || (length === null && request.body === null);
}

async function readWhole(request: Request, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const length = request.headers.get("content-length");
  if (Number(length ?? 0) > bytesMax) throw tooLarge(bytesMax);
  // A length that was told holds for what comes over HTTP: nothing needs to be counted on the way.
  const reading =
    length === null
      ? count(request.body, bytesMax)
      : inTime(request.arrayBuffer()).then((whole) => new Uint8Array(whole));
  const bytes = await reading.catch((thrown: unknown) => {
    // Chunks that are none, or an end before the end.
    throw thrown instanceof BerthError ? thrown : broken();
  });
  if (bytes.byteLength > bytesMax) throw tooLarge(bytesMax);
  return bytes;
}

function broken(): BerthError {
  return new BerthError("bad_request", "The body broke off, or lies about its size.", {
    facts: { field: "body" },
  });
}

function checkType(headers: Headers, wanted: string, demanded: boolean): void {
  const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (demanded && type !== wanted) {
    throw new BerthError("unsupported_type", `The body must be ${wanted}.`, {
      hint: `Send \`Content-Type: ${wanted}\`.`,
    });
  }
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding !== "identity") {
    throw new BerthError("unsupported_type", "The body must not be compressed.");
  }
}

async function inTime(body: Promise<ArrayBuffer>): Promise<ArrayBuffer> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(tooSlow()), limits.bodyReadMs);
  });
  try {
    return await Promise.race([body, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Without a told length the bytes are counted. */
async function count(
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer>> {
  if (body === null) return new Uint8Array(0);
  const reader = body.getReader();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), limits.bodyReadMs);
  });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const read = await Promise.race([reader.read(), late]);
      if (read === "late") {
        throw tooSlow();
      }
      if (read.done) return joined(chunks, bytes);
      bytes += read.value.length;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      chunks.push(read.value);
    }
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => undefined);
  }
}

function joined(chunks: Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BerthError("bad_json", "The body is not JSON.");
  }
  // A member takes two characters at least: a short text needs no look.
  if (text.length > limits.bodyMembersMax * 2) boundMembers(value);
  // A schema would drop this name without a word.
  if (/__proto__|\\u005f/i.test(text) && hasProtoKey(value)) {
    throw new BerthError("bad_request", "__proto__: is not a name that can be used here", {
      facts: { field: "__proto__" },
    });
  }
  return value;
}

/** A schema collects what is wrong with each of them, and hands a list of too many on as arguments, which ends it. */
function boundMembers(root: unknown): void {
  const open: [value: unknown, field: string][] = [[root, "body"]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, field] = next;
    if (typeof value !== "object" || value === null) continue;
    const members = Object.entries(value);
    if (members.length > limits.bodyMembersMax) {
      throw new BerthError(
        "bad_request",
        `${field}: must have at most ${limits.bodyMembersMax} members`,
        { facts: { field } },
      );
    }
    for (const [name, inner] of members) open.push([inner, field === "body" ? name : field]);
  }
}

function hasProtoKey(root: unknown): boolean {
  const open: unknown[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue;
    if (Object.hasOwn(value, "__proto__")) return true;
    for (const inner of Object.values(value)) open.push(inner ?? "");
  }
  return false;
}

function tooSlow(): BerthError {
  return new BerthError("body_timeout", `The body did not arrive in ${limits.bodyReadMs} ms.`);
}

export function tooLarge(bytesMax: number): BerthError {
  return new BerthError("too_large", `The body is larger than ${bytesMax} bytes.`, {
    facts: { bytesMax },
  });
}
