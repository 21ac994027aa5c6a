/** Calls the machine's engine about images. */
import { z } from "zod";
import { type Image, imageSchema, type PullCall } from "../protocol/image.ts";
import { enginePaths } from "../protocol/internal/engine.ts";
import { limits } from "../protocol/limits.ts";
import { callEngine, type EngineAddress, refuseEngineError } from "./engine.ts";

const shortMs = 10_000;
const marginMs = 2_000;

export function listImages(engine: EngineAddress): Promise<Image[]> {
  const schema = z.array(imageSchema);
  return callEngine(engine, "GET", enginePaths.images, { schema, waitMs: shortMs });
}

export function findImage(engine: EngineAddress, reference: string): Promise<Image> {
  return callEngine(engine, "GET", withQuery(enginePaths.image, { reference }), {
    schema: imageSchema,
    waitMs: shortMs,
  });
}

export function pullImage(engine: EngineAddress, call: PullCall): Promise<Image> {
  return callEngine(engine, "POST", enginePaths.pull, {
    body: call,
    schema: imageSchema,
    waitMs: call.waitMs + marginMs,
  });
}

export function removeImage(engine: EngineAddress, reference: string): Promise<Image> {
  return callEngine(engine, "DELETE", withQuery(enginePaths.image, { reference }), {
    schema: imageSchema,
    waitMs: shortMs,
  });
}

/** The body passes through as it arrives. */
export async function importImage(
  { baseUrl, secret }: EngineAddress,
  name: string,
  body: ReadableStream | null,
): Promise<Image> {
  const path = withQuery(enginePaths.import, { name });
  const response = await fetch(`${baseUrl}${path}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/x-tar" },
    body: body ?? "",
    signal: AbortSignal.timeout(limits.imageImportMs),
  });
  const json: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw refuseEngineError(json, path);
  return imageSchema.parse(json);
}

function withQuery(path: string, query: Record<string, string>): string {
  return `${path}?${new URLSearchParams(query)}`;
}
