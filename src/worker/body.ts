/**
 * Owns reading a JSON body: type, size, time, encoding, and the schema of its route; a bad field is named.
 * Does not own what the fields mean.
 */
import type { z } from "zod";
import { BerthError } from "../protocol/errors.ts";
import { limits } from "../protocol/limits.ts";

export async function readBody<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
): Promise<z.infer<Schema>> {
  const text = await readText(request);
  return parseCall(schema, text === "" ? {} : parseJson(text));
}

/** Checks what came in, by REST or by RPC. Names the first field that does not fit. */
export function parseCall<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.infer<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const inside = issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const field = [...(issue?.path ?? []), ...inside].join(".") || "body";
  const message =
    issue?.code === "unrecognized_keys"
      ? "is not a field of this call"
      : (issue?.message ?? "is not valid");
  throw new BerthError("bad_request", `${field}: ${message}`, {
    hint: "The forms of all calls stand in /openapi.json.",
    facts: { field },
  });
}

async function readText(request: Request): Promise<string> {
  const { headers, body } = request;
  if (body === null) return "";
  checkType(headers);
  if (Number(headers.get("content-length") ?? 0) > limits.bodyBytesMax) throw tooLarge();
  // A length that was told holds for what comes over HTTP: nothing needs to be counted on the way.
  const told = headers.has("content-length");
  const bytes = told ? await inTime(request.arrayBuffer()) : await readBytes(body);
  if (bytes.byteLength > limits.bodyBytesMax) throw tooLarge();
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    throw new BerthError("bad_json", "The body is not UTF-8.");
  }
}

function checkType(headers: Headers): void {
  const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    throw new BerthError("unsupported_type", "The body must be application/json.", {
      hint: "Send `Content-Type: application/json`.",
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
async function readBytes(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
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
      if (bytes > limits.bodyBytesMax) throw tooLarge();
      chunks.push(read.value);
    }
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => undefined);
  }
}

function joined(chunks: Uint8Array[], length: number): Uint8Array {
  if (chunks.length === 1 && chunks[0] !== undefined) return chunks[0];
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
  // A schema would drop this name without a word.
  if (/__proto__|\\u005f/i.test(text) && hasProtoKey(value)) {
    throw new BerthError("bad_request", "__proto__: is not a name that can be used here", {
      facts: { field: "__proto__" },
    });
  }
  return value;
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

function tooLarge(): BerthError {
  return new BerthError("too_large", `The body is larger than ${limits.bodyBytesMax} bytes.`, {
    facts: { bytesMax: limits.bodyBytesMax },
  });
}
