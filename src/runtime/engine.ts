/** The runtime of a container of the machine's engine. Requests to the agent go directly to its address. */
import type { z } from "zod";
import { changesSchema } from "../protocol/checkpoint.ts";
import { BerthError, errorBodySchema } from "../protocol/errors.ts";
import { type Size, sizeError } from "../protocol/fields/size.ts";
import {
  type EngineHealth,
  type EngineStart,
  engineExitSchema,
  engineHealthSchema,
  enginePaths,
  engineSnapshotMadeSchema,
  engineStartedSchema,
} from "../protocol/internal/engine.ts";
import { limits } from "../protocol/limits.ts";
import type { ContainerRuntime, StartOptions } from "./runtime.ts";
import { type StartTimer, withTimeout } from "./timeout.ts";

export type EngineAddress = { baseUrl: string; secret: string };

type Engine = EngineAddress & { startTimer?: StartTimer | undefined };

/** The engine has the same limits and reports more when one is exceeded, so it gets time to respond. */
const marginMs = 2_000;
const healthTimeoutMs = 2_000;

export function engineRuntime({ id, ...engine }: Engine & { id: string }): ContainerRuntime {
  return {
    keepsFiles: true,
    env: {},
    savesFiles: true,
    comparesTrees: true,
    filtersHosts: false,
    freezesToSave: true,
    renewEveryMs: undefined,
    renew: async () => undefined,
    async start({
      image: _name,
      imageDigest,
      size,
      snapshot,
      base,
      network,
      labels: _labels,
      envVersion: _version,
      ...options
    }: StartOptions) {
      const { internet } = network;
      const bounds = size === undefined ? undefined : boundsOf(size);
      const started = await callEngine(engine, "POST", enginePaths.start(id), {
        body: {
          ...{ ...options, network: { internet }, bounds, image: imageDigest },
          ...{ snapshotId: snapshot, baseId: base },
        },
        schema: engineStartedSchema,
        waitMs: startTimeoutOf({ snapshot, base }) + marginMs,
      });
      const { agentUrl, startId: _startId, ...rest } = started;
      return { ...rest, address: agentUrl };
    },
    async destroy(files) {
      await send(
        engine,
        "POST",
        enginePaths.destroy(id),
        { files },
        limits.destroyTimeoutMs + marginMs,
      );
    },
    async signal(signal) {
      await send(engine, "POST", enginePaths.signal(id), { signal }, limits.agentHeadersMs);
    },
    async monitor(startId, waitMs) {
      const path = `${enginePaths.monitor(id)}?startId=${startId}&waitMs=${waitMs}`;
      const response = await send(engine, "GET", path, undefined, waitMs + marginMs);
      if (response === undefined) return undefined;
      const { startId: _startId, ...exit } = engineExitSchema.parse(response);
      return exit;
    },
    agent: (_address, request, init) => fetch(request, init),
    async snapshot(snapshotId) {
      const made = await callEngine(engine, "POST", enginePaths.snapshot(id), {
        body: { snapshotId },
        schema: engineSnapshotMadeSchema,
        waitMs: limits.snapshotTimeoutMs + marginMs,
      });
      return { handle: snapshotId, bytes: made.bytes };
    },
    async removeSnapshot(handle) {
      const waitMs = limits.snapshotTimeoutMs + marginMs;
      await send(engine, "DELETE", enginePaths.snapshotOf(handle), undefined, waitMs);
    },
    changes: ({ from, to, listMax }) =>
      callEngine(engine, "POST", enginePaths.changes(to), {
        body: { fromId: from, listMax },
        schema: changesSchema,
        waitMs: limits.changesTimeoutMs + marginMs,
      }),
  };
}

/** An instance type of the platform means nothing to the engine. */
function boundsOf(size: Size): EngineStart["bounds"] {
  const { name, memoryBytes, processes } = size;
  if (memoryBytes !== undefined || processes !== undefined) return { memoryBytes, processes };
  throw sizeError(name, "sets no limit that the engine can enforce");
}

/** A start from a saved tree also copies that tree. */
function startTimeoutOf({ snapshot, base }: Pick<StartOptions, "snapshot" | "base">): number {
  return snapshot === undefined && base === undefined
    ? limits.agentReadyTimeoutMs
    : limits.snapshotTimeoutMs;
}

export function engineHealth(engine: Engine): Promise<EngineHealth> {
  return callEngine(engine, "GET", enginePaths.health, {
    schema: engineHealthSchema,
    waitMs: healthTimeoutMs,
  });
}

export async function callEngine<Schema extends z.ZodType>(
  engine: Engine,
  method: "GET" | "POST" | "DELETE",
  path: string,
  { body, schema, waitMs }: { body?: unknown; schema: Schema; waitMs: number },
): Promise<z.infer<Schema>> {
  const parsed = schema.safeParse(await send(engine, method, path, body, waitMs));
  if (parsed.success) return parsed.data;
  throw new BerthError("unavailable", `The engine's response to ${path} is invalid.`);
}

/** Returns the parsed response; undefined if it is empty or not JSON. */
async function send(
  engine: Engine,
  method: "GET" | "POST" | "DELETE",
  path: string,
  body: unknown,
  waitMs: number,
): Promise<unknown> {
  const request = async (signal: AbortSignal) => {
    const response = await fetch(`${engine.baseUrl}${path}`, {
      method,
      signal,
      headers: {
        authorization: `Bearer ${engine.secret}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json: unknown = await response.json().catch(() => undefined);
    return { isRefused: !response.ok, json };
  };
  const { isRefused, json } = await withTimeout(waitMs, request, engine.startTimer).catch(() => {
    throw new BerthError("unavailable", "The engine of this machine does not respond.");
  });
  if (isRefused) throw refuseEngineError(json, path);
  return json;
}

export function refuseEngineError(body: unknown, path: string): BerthError {
  const parsed = errorBodySchema.safeParse(body);
  if (!parsed.success) {
    return new BerthError("unavailable", `The engine failed at ${path}.`);
  }
  const { code, message, hint, retryable: _retryable, ...facts } = parsed.data.error;
  return new BerthError(code, message, {
    facts: facts as Record<string, string>,
    ...(hint === undefined ? {} : { hint }),
  });
}
