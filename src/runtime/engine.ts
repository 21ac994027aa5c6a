/**
 * Owns the way to a container that the embedded engine of one machine runs.
 * Does not own the data path: requests to the agent go to its own address, not through the engine.
 */
import type { z } from "zod";
import { changesSchema } from "../protocol/changes.ts";
import { BerthError, errorBodySchema } from "../protocol/errors.ts";
import { type Size, sizeUnsupported } from "../protocol/fields/size.ts";
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
import type { Container, StartOptions } from "./runtime.ts";
import { type Timer, within } from "./timeout.ts";

type Engine = { baseUrl: string; secret: string; timer?: Timer | undefined };

/** The engine has the same limits and says more when one is met: it gets the time to. */
const answerMs = 2_000;
const healthMs = 2_000;

export function engineContainer({ id, ...engine }: Engine & { id: string }): Container {
  return {
    keepsFiles: true,
    savesFiles: true,
    comparesTrees: true,
    filtersHosts: false,
    async start({ image, size, snapshot, base, network, ...options }: StartOptions) {
      const { internet } = network;
      const room = size === undefined ? undefined : roomOf(size);
      const started = await call(engine, "POST", enginePaths.start(id), {
        body: { ...options, network: { internet }, room, snapshotId: snapshot, baseId: base },
        schema: engineStartedSchema,
        waitMs: startMs({ snapshot, base }) + answerMs,
      });
      const { agentUrl, startId: _startId, ...rest } = started;
      const notes = image === undefined ? [] : [`image ${image}: one machine has only its own.`];
      return { ...rest, address: agentUrl, notes: [...rest.notes, ...notes] };
    },
    async destroy(files) {
      await send(
        engine,
        "POST",
        enginePaths.destroy(id),
        { files },
        limits.destroyTimeoutMs + answerMs,
      );
    },
    async signal(signal) {
      await send(engine, "POST", enginePaths.signal(id), { signal }, limits.agentHeadersMs);
    },
    async monitor(startId, waitMs) {
      const path = `${enginePaths.monitor(id)}?startId=${startId}&waitMs=${waitMs}`;
      const told = await send(engine, "GET", path, undefined, waitMs + answerMs);
      if (told === undefined) return undefined;
      const { startId: _startId, ...exit } = engineExitSchema.parse(told);
      return exit;
    },
    agent: (_address, request, init) => fetch(request, init),
    async snapshot(snapshotId) {
      const made = await call(engine, "POST", enginePaths.snapshot(id), {
        body: { snapshotId },
        schema: engineSnapshotMadeSchema,
        waitMs: limits.snapshotTimeoutMs + answerMs,
      });
      return { handle: snapshotId, bytes: made.bytes };
    },
    async removeSnapshot(handle) {
      const waitMs = limits.snapshotTimeoutMs + answerMs;
      await send(engine, "DELETE", enginePaths.snapshotOf(handle), undefined, waitMs);
    },
    changes: ({ from, to, listMax }) =>
      call(engine, "POST", enginePaths.changes(to), {
        body: { fromId: from, listMax },
        schema: changesSchema,
        waitMs: limits.changesTimeoutMs + answerMs,
      }),
  };
}

/** A machine of the platform's cannot be had here. */
function roomOf(size: Size): EngineStart["room"] {
  const { name, memoryBytes, processes } = size;
  if (memoryBytes !== undefined || processes !== undefined) return { memoryBytes, processes };
  throw sizeUnsupported(name, "says nothing that a room of one machine could be held to");
}

/** Copying a tree takes its time. */
function startMs({ snapshot, base }: Pick<StartOptions, "snapshot" | "base">): number {
  return snapshot === undefined && base === undefined
    ? limits.startTimeoutMs
    : limits.snapshotTimeoutMs;
}

export function engineHealth(engine: Engine): Promise<EngineHealth> {
  return call(engine, "GET", enginePaths.health, { schema: engineHealthSchema, waitMs: healthMs });
}

async function call<Schema extends z.ZodType>(
  engine: Engine,
  method: "GET" | "POST",
  path: string,
  { body, schema, waitMs }: { body?: unknown; schema: Schema; waitMs: number },
): Promise<z.infer<Schema>> {
  const parsed = schema.safeParse(await send(engine, method, path, body, waitMs));
  if (parsed.success) return parsed.data;
  throw new BerthError("unavailable", `The engine's answer to ${path} was not understood.`);
}

/** What was answered; undefined where that is nothing, or nothing that can be read. */
async function send(
  engine: Engine,
  method: "GET" | "POST" | "DELETE",
  path: string,
  body: unknown,
  waitMs: number,
): Promise<unknown> {
  const question = async (signal: AbortSignal) => {
    const response = await fetch(`${engine.baseUrl}${path}`, {
      method,
      signal,
      headers: {
        authorization: `Bearer ${engine.secret}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const told: unknown = await response.json().catch(() => undefined);
    return { isRefused: !response.ok, told };
  };
  const { isRefused, told } = await within(waitMs, question, engine.timer).catch(() => {
    throw new BerthError("unavailable", "The engine of this machine does not answer.");
  });
  if (isRefused) throw refusalOf(told, path);
  return told;
}

function refusalOf(body: unknown, path: string): BerthError {
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
