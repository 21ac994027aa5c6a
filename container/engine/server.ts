/**
 * The engine's HTTP routes: checks the secret and the bodies, calls the containers and formats errors. See
 * sandbox/containers.ts.
 */
import { timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { BerthError, errorBody, errors } from "../../src/protocol/errors.ts";
import { sandboxIdSchema } from "../../src/protocol/fields/id.ts";
import { wholeNumber } from "../../src/protocol/fields/whole-number.ts";
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
import { compareSnapshots } from "./snapshots/changes.ts";
import { removeSnapshot } from "./snapshots/snapshots.ts";

/** The limit for connections that have not authenticated. */
const idleSecondsMax = 10;
const bodyBytesMax = 24 * 1024 * 1024;

export function serve(engine: Engine, containers: Containers) {
  const routes = routesOf(engine, containers);
  const expected = Buffer.from(`Bearer ${engine.settings.secret}`);
  return Bun.serve({
    hostname: "127.0.0.1",
    port: engine.settings.port,
    idleTimeout: idleSecondsMax,
    maxRequestBodySize: bodyBytesMax,
    async fetch(request, server) {
      const requestId = request.headers.get(agentHeaders.requestId) ?? crypto.randomUUID();
      try {
        if (!isSecret(request.headers.get("authorization"), expected)) {
          throw new BerthError("unauthenticated", "The engine's secret is missing or wrong.");
        }
        // Saving a large tree sends nothing for minutes; each route has a time limit of its own.
        server.timeout(request, 0);
        return await dispatch(routes, request);
      } catch (error) {
        return errorResponse(error, requestId);
      }
    },
  });
}

type Route = {
  method: string;
  pattern: RegExp;
  handle(match: string[], request: Request): Promise<Response>;
};

function routesOf(engine: Engine, containers: Containers): Route[] {
  const container = (verb: string) =>
    new RegExp(`^${enginePaths.start("([^/]+)").replace(/start$/, verb)}$`);
  return [
    route("GET", new RegExp(`^${enginePaths.health}$`), async () =>
      Response.json({
        containers: containers.count,
        containersMax: engine.settings.containersMax,
        isolation: engine.machine.isolation,
        missing: engine.machine.missing,
      } satisfies EngineHealth),
    ),
    route("POST", container("start"), async ([id], request) =>
      Response.json(await containers.start(idOf(id), await readBody(request, engineStartSchema))),
    ),
    route("POST", container("destroy"), async ([id], request) => {
      await containers.destroy(idOf(id), (await readBody(request, engineDestroySchema)).files);
      return new Response(null, { status: 204 });
    }),
    route("POST", container("signal"), async ([id], request) => {
      containers.signal(idOf(id), (await readBody(request, engineSignalSchema)).signal);
      return new Response(null, { status: 204 });
    }),
    route("GET", container("monitor"), async ([id], request) => {
      const { startId, waitMs } = parse(monitorSchema, queryOf(request), "query");
      const exit = await containers.monitor(idOf(id), startId, waitMs, request.signal);
      return exit === undefined ? new Response(null, { status: 204 }) : Response.json(exit);
    }),
    route("POST", container("snapshot"), async ([id], request) => {
      const { snapshotId } = await readBody(request, engineSnapshotSchema);
      const bytes = await containers.snapshot(idOf(id), snapshotId);
      return Response.json({ snapshotId, bytes });
    }),
    route("DELETE", new RegExp(`^${enginePaths.snapshotOf("([^/]+)")}$`), async ([snapshotId]) => {
      await removeSnapshot(engine.folders, idOf(snapshotId));
      return new Response(null, { status: 204 });
    }),
    route("POST", new RegExp(`^${enginePaths.changes("([^/]+)")}$`), async ([toId], request) => {
      const { fromId, listMax } = await readBody(request, engineChangesSchema);
      const call = { fromId, toId: idOf(toId), listMax };
      return Response.json(await compareSnapshots(engine.folders, call, request.signal));
    }),
  ];
}

function route(method: string, pattern: RegExp, handle: Route["handle"]): Route {
  return { method, pattern, handle };
}

async function dispatch(routes: Route[], request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const matching = routes.filter(({ pattern }) => pattern.test(pathname));
  const route = matching.find(({ method }) => method === request.method);
  if (route !== undefined) {
    return await route.handle(route.pattern.exec(pathname)?.slice(1) ?? [], request);
  }
  if (matching.length === 0)
    throw new BerthError("not_found", `The engine has no route ${pathname}.`);
  const allow = matching.map(({ method }) => method).join(", ");
  throw new BerthError("method_not_allowed", `${pathname} accepts only ${allow}.`);
}

const monitorSchema = z.strictObject({
  startId: z.string(),
  waitMs: wholeNumber(0, limits.monitorWaitMaxMs).prefault(limits.monitorWaitMaxMs),
});

function queryOf(request: Request): Record<string, string> {
  return Object.fromEntries(new URL(request.url).searchParams);
}

/** An id becomes a folder name: nothing else may pass. */
function idOf(text: string | undefined): string {
  return parse(sandboxIdSchema, text, "id");
}

async function readBody<T>(request: Request, schema: z.ZodType<T>): Promise<T> {
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
