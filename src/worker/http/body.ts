/** Reads bodies: type, size, time and encoding, and for JSON the schema of the row. */
import { z } from "zod";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { VerbRow } from "../../protocol/verbs/row.ts";
import { bodyIsRead } from "../admission.ts";
import { invalidField, validate } from "./validate.ts";

export async function readBody<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
): Promise<z.infer<Schema>> {
  const text = await readText(request);
  return validate(schema, text === "" ? {} : parseJson(text));
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

const noFieldsSchema = z.strictObject({});

/** For calls without a body: also accepts an object without fields, which some programs always send. */
export async function readNothing(request: Request): Promise<void> {
  if (request.body !== null) await readBody(request, noFieldsSchema);
}

/** The body of an RPC method, which is an argument already. */
export function readMethodBody({ body, bodyBytesMax = 0 }: VerbRow, value: unknown): unknown {
  if (body === undefined) return undefined;
  if (body !== "bytes") return validate(body, value);
  if (!(value instanceof Uint8Array)) throw invalidField("bytes", "must be a Uint8Array");
  if (value.length > bodyBytesMax) throw tooLarge(bodyBytesMax);
  return value;
}

/** Reads bytes as they are. */
export async function readBytes(
  request: Request,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const { headers } = request;
  if (isEmpty(request)) return new Uint8Array(0);
  checkType(headers, "application/octet-stream", headers.has("content-type"));
  return readWhole(request, bytesMax);
}

async function readText(request: Request): Promise<string> {
  const { headers } = request;
  if (isEmpty(request)) return "";
  // An empty chunked body needs no type.
  const mayBeEmpty = !headers.has("content-length") && !headers.has("content-type");
  checkType(headers, "application/json", !mayBeEmpty);
  const bytes = await readWhole(request, limits.bodyBytesMax);
  if (bytes.byteLength === 0) return "";
  if (mayBeEmpty) checkType(headers, "application/json", true);
  try {
    return utf8.decode(bytes);
  } catch {
    throw new BerthError("bad_json", "The body is not UTF-8.", {
      hint: "Write JSON in UTF-8, without other bytes.",
    });
  }
}

/** `fetch` sends `Content-Length: 0` for a POST without a body. Reading `request.body` would make a stream of it. */
function isEmpty(request: Request): boolean {
  const length = request.headers.get("content-length");
  return length === "0" || (length === null && request.body === null);
}

async function readWhole(request: Request, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const length = request.headers.get("content-length");
  if (Number(length ?? 0) > bytesMax) throw tooLarge(bytesMax);
  // The HTTP server enforces `Content-Length`, so bytes are counted only without it.
  const reading =
    length === null ? readCounted(request.body, bytesMax) : withTimeout(request.arrayBuffer());
  const buffer = await reading.catch((thrown: unknown) => {
    if (thrown instanceof BerthError) throw thrown;
    // Malformed chunks, or a connection that was cut.
    throw new BerthError("bad_request", "The body ended early, or its size is wrong.", {
      facts: { field: "body" },
    });
  });
  bodyIsRead(request);
  if (buffer.byteLength > bytesMax) throw tooLarge(bytesMax);
  return new Uint8Array(buffer);
}

function checkType(headers: Headers, expected: string, isRequired: boolean): void {
  const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (isRequired && type !== expected) {
    throw new BerthError("unsupported_type", `The body must be ${expected}.`, {
      hint: `Send \`Content-Type: ${expected}\`.`,
    });
  }
  refuseCompressed(headers);
}

/** The bytes of files would be written as they are. */
export function refuseCompressed(headers: Headers): void {
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding === "identity") return;
  throw new BerthError("unsupported_type", "The body must not be compressed.", {
    hint: "Leave out `Content-Encoding`.",
  });
}

async function withTimeout<T>(reading: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(bodyTimeout()), limits.bodyReadMs);
  });
  try {
    return await Promise.race([reading, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Reads a body without `Content-Length`, and stops at the limit. */
async function readCounted(
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number,
): Promise<ArrayBuffer> {
  if (body === null) return new ArrayBuffer(0);
  const reader = body.getReader();
  try {
    return await withTimeout(readChunks(reader, bytesMax));
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

async function readChunks(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  bytesMax: number,
): Promise<ArrayBuffer> {
  const chunks: Uint8Array[] = [];
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return new Blob(chunks).arrayBuffer();
    bytes += value.length;
    if (bytes > bytesMax) throw tooLarge(bytesMax);
    chunks.push(value);
  }
}

function parseJson(text: string): unknown {
  boundAllMembers(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BerthError("bad_json", "The body is not JSON.", {
      hint: "Names and texts need double quotes, and nothing may follow the value.",
    });
  }
  // A member has at least two characters, so a short text cannot have too many.
  if (text.length > limits.bodyMembersMax * 2) boundMembers(value);
  // A schema would drop this name silently.
  if (/__proto__|\\u005f/i.test(text) && hasProtoKey(value)) {
    throw invalidField("__proto__", "this name cannot be used");
  }
  return value;
}

/**
 * Counts commas and brackets outside of texts before the body is parsed: parsing and checking millions of members takes
 * seconds, in which the thread serves nobody else.
 */
function boundAllMembers(text: string): void {
  const max = limits.bodyMembersTotalMax;
  if (text.length <= max) return;
  let members = 0;
  for (let index = 0; index < text.length; index += 1) {
    switch (text.charCodeAt(index)) {
      case 0x22: // "
        index = endOfText(text, index);
        break;
      case 0x2c: // ,
      case 0x5b: // [
      case 0x7b: // {
        members += 1;
        if (members > max) throw invalidField("body", `must have at most ${max} members in all`);
    }
  }
}

/** The closing quote of a text in JSON. */
function endOfText(text: string, start: number): number {
  let index = start + 1;
  while (index < text.length && text.charCodeAt(index) !== 0x22)
    index += text[index] === "\\" ? 2 : 1;
  return index;
}

/** A schema passes the list of all issues as arguments, and too many of them overflow the stack. */
function boundMembers(root: unknown): void {
  for (const [value, field] of objectsIn(root)) {
    if (Object.keys(value).length > limits.bodyMembersMax) {
      throw invalidField(field, `must have at most ${limits.bodyMembersMax} members`);
    }
  }
}

function hasProtoKey(root: unknown): boolean {
  for (const [value] of objectsIn(root)) if (Object.hasOwn(value, "__proto__")) return true;
  return false;
}

/** All objects and lists of a body, each with the field of the body that holds it. */
function* objectsIn(root: unknown): Generator<[value: object, field: string]> {
  const open: [value: unknown, field: string][] = [[root, "body"]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, field] = next;
    if (typeof value !== "object" || value === null) continue;
    yield [value, field];
    for (const [name, inner] of Object.entries(value)) {
      open.push([inner, field === "body" ? name : field]);
    }
  }
}

function bodyTimeout(): BerthError {
  return new BerthError("body_timeout", `The body did not arrive in ${limits.bodyReadMs} ms.`);
}

export function tooLarge(bytesMax: number): BerthError {
  return new BerthError("too_large", `The body is larger than ${bytesMax} bytes.`, {
    facts: { bytesMax },
  });
}
