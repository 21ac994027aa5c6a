/**
 * The engine's HTTP routes: checks the secret and the bodies, calls the containers and formats errors. See
 * sandbox/containers.ts.
 */
import { timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { BerthError, errorBody, errors } from "../../src/protocol/errors.ts";
import { sandboxIdSchema } from "../../src/protocol/fields/id.ts";
import { queryNumber } from "../../src/protocol/fields/scalar.ts";
import { imageQuerySchema, importQuerySchema, pullCallSchema } from "../../src/protocol/image.ts";
import { agentHeaders } from "../../src/protocol/internal/agent.ts";
import {
  type EngineHealth,
  engineChangesSchema,
  engineDestroySchema,
  enginePaths,
  engineSignalSchema,
  engineSnapshotSchema,
  engineStartSchema,
} from "../../src/protocol/internal/engine.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { Engine } from "./engine.ts";
import { log } from "./log.ts";
import type { Containers } from "./sandbox/containers.ts";
import { serverProcesses } from "./server-processes.ts";
import { compareSnapshots } from "./snapshots/changes.ts";
import { removeSnapshot } from "./snapshots/snapshots.ts";

/** The limit for connections that have not authenticated. */
const idleSecondsMax = 10;
const bodyBytesMax = 24 * 1024 * 1024;

type Handle = (request: Request, pathId: string) => Response | Promise<Response>;

export function serve(engine: Engine, containers: Containers) {
  const expected = Buffer.from(`Bearer ${engine.settings.secret}`);
  const authenticated =
    (handle: Handle) =>
    async (request: Request & { params?: { id?: string } }, server: Bun.Server<unknown>) => {
      const requestId = request.headers.get(agentHeaders.requestId) ?? crypto.randomUUID();
      try {
        if (!isSecret(request.headers.get("authorization"), expected)) {
          throw new BerthError("unauthenticated", "The engine's secret is missing or wrong.");
        }
        // Saving a large tree sends nothing for minutes; each route has a time limit of its own.
        server.timeout(request, 0);
        return await handle(request, request.params?.id ?? "");
      } catch (error) {
        return errorResponse(error, requestId);
      }
    };
  const route = (method: string, handle: Handle) =>
    authenticated((request, pathId) => {
      if (request.method === method) return handle(request, pathId);
      const { pathname } = new URL(request.url);
      throw new BerthError("method_not_allowed", `${pathname} accepts only ${method}.`);
    });
  return Bun.serve({
    hostname: "127.0.0.1",
    port: engine.settings.port,
    idleTimeout: idleSecondsMax,
    maxRequestBodySize: engine.settings.images.imageBytesMax,
    routes: {
      [enginePaths.health]: route("GET", () =>
        Response.json({
          containers: containers.count,
          containersMax: engine.settings.containersMax,
          isolation: engine.machine.isolation,
          missing: engine.machine.missing,
          disk: containers.disk.read(),
          processes: serverProcesses(engine.settings.processRecord),
        } satisfies EngineHealth),
      ),
      [enginePaths.start(":id")]: route("POST", async (request, pathId) => {
        const call = await readBody(request, engineStartSchema);
        return Response.json(await containers.start(idOf(pathId), call));
      }),
      [enginePaths.destroy(":id")]: route("POST", async (request, pathId) => {
        const { files } = await readBody(request, engineDestroySchema);
        await containers.destroy(idOf(pathId), files);
        if (files === "remove") engine.images.store.release(pathId);
        return noContent();
      }),
      [enginePaths.signal(":id")]: route("POST", async (request, pathId) => {
        const { signal } = await readBody(request, engineSignalSchema);
        containers.signal(idOf(pathId), signal);
        return noContent();
      }),
      [enginePaths.monitor(":id")]: route("GET", async (request, pathId) => {
        const { startId, waitMs } = parse(monitorSchema, queryOf(request), "query");
        const exit = await containers.monitor(idOf(pathId), startId, waitMs, request.signal);
        return exit === undefined ? noContent() : Response.json(exit);
      }),
      [enginePaths.snapshot(":id")]: route("POST", async (request, pathId) => {
        const { snapshotId } = await readBody(request, engineSnapshotSchema);
        engine.images.store.copyUse(idOf(pathId), snapshotId);
        const bytes = await containers.snapshot(idOf(pathId), snapshotId);
        return Response.json({ snapshotId, bytes });
      }),
      [enginePaths.snapshotOf(":id")]: route("DELETE", async (_request, pathId) => {
        await removeSnapshot(engine.folders, idOf(pathId));
        engine.images.store.release(pathId);
        return noContent();
      }),
      [enginePaths.changes(":id")]: route("POST", async (request, pathId) => {
        const { fromId, listMax } = await readBody(request, engineChangesSchema);
        const call = { fromId, toId: idOf(pathId), listMax };
        return Response.json(await compareSnapshots(engine.folders, call, request.signal));
      }),
      [enginePaths.images]: route("GET", () => Response.json(engine.images.list())),
      [enginePaths.image]: authenticated((request) => {
        const { reference } = parse(imageQuerySchema, queryOf(request), "query");
        const { images } = engine;
        return Response.json(
          request.method === "DELETE" ? images.remove(reference) : images.find(reference),
        );
      }),
      [enginePaths.pull]: route("POST", async (request) => {
        const { reference, waitMs } = await readBody(request, pullCallSchema);
        return Response.json(await engine.images.pull(reference, waitMs));
      }),
      [enginePaths.import]: route("PUT", async (request) => {
        const { name } = parse(importQuerySchema, queryOf(request), "query");
        const body = request.body ?? new Blob([]).stream();
        return Response.json(await engine.images.import(name, body));
      }),
    },
    fetch: authenticated((request) => {
      const { pathname } = new URL(request.url);
      throw new BerthError("not_found", `The engine has no route ${pathname}.`);
    }),
  });
}

function noContent(): Response {
  return new Response(null, { status: 204 });
}

const monitorSchema = z.strictObject({
  startId: z.string(),
  waitMs: queryNumber(0, limits.monitorWaitMaxMs).prefault(limits.monitorWaitMaxMs),
});

/** An id becomes a folder name: nothing else may pass. */
function idOf(text: string): string {
  return parse(sandboxIdSchema, text, "id");
}

function queryOf(request: Request): Record<string, string> {
  return Object.fromEntries(new URL(request.url).searchParams);
}

async function readBody<T>(request: Request, schema: z.ZodType<T>): Promise<T> {
  if (Number(request.headers.get("content-length") ?? 0) > bodyBytesMax)
    throw new BerthError("too_large", `The body is larger than ${bodyBytesMax} bytes.`);
  let json: unknown;
  try {
    json = await request.json();
  } catch {
    throw new BerthError("bad_json", "The body is not JSON.");
  }
  return parse(schema, json, "body");
}

function parse<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const field = [where, ...(issue?.path ?? [])].join(".");
  throw new BerthError("bad_request", `${field}: ${issue?.message ?? "is not valid"}`, {
    facts: { field },
  });
}

function isSecret(header: string | null, expected: Buffer): boolean {
  const bytes = Buffer.from(header ?? "");
  // The length is no secret; equal lengths are compared in constant time.
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}

function errorResponse(thrown: unknown, requestId: string): Response {
  if (thrown instanceof BerthError) {
    return Response.json(errorBody(thrown, requestId), { status: errors[thrown.code].status });
  }
  log("fault", { requestId, why: thrown instanceof Error ? thrown.stack : String(thrown) });
  const fault = new BerthError(
    "internal",
    "Internal error of the engine. Search its log for the request id.",
  );
  return Response.json(errorBody(fault, requestId), { status: 500 });
}
