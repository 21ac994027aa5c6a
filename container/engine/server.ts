/**
 * Owns the engine's routes: the secret, the forms of bodies, verbs of containers, errors as the protocol has them.
 * Does not own what the verbs do (containers.ts).
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

/** Of a connection that has not said whose it is. */
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
        if (!isSame(request.headers.get("authorization"), expected)) {
          throw new BerthError(
            "unauthenticated",
            "the engine's secret is missing or not the right one",
          );
        }
        // Saving the largest tree is silent for minutes; each route has a limit of its own.
        server.timeout(request, 0);
        return await answer(routes, request);
      } catch (error) {
        return refusal(error, requestId);
      }
    },
  });
}

type Route = {
  method: string;
  pattern: RegExp;
  answer(match: string[], request: Request): Promise<Response>;
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
      Response.json(await containers.start(idOf(id), await body(request, engineStartSchema))),
    ),
    route("POST", container("destroy"), async ([id], request) => {
      await containers.destroy(idOf(id), (await body(request, engineDestroySchema)).files);
      return new Response(null, { status: 204 });
    }),
    route("POST", container("signal"), async ([id], request) => {
      containers.signal(idOf(id), (await body(request, engineSignalSchema)).signal);
      return new Response(null, { status: 204 });
    }),
    route("GET", container("monitor"), async ([id], request) => {
      const { startId, waitMs } = parse(monitorSchema, query(request), "query");
      const exit = await containers.monitor(idOf(id), startId, waitMs, request.signal);
      return exit === undefined ? new Response(null, { status: 204 }) : Response.json(exit);
    }),
    route("POST", container("snapshot"), async ([id], request) => {
      const { snapshotId } = await body(request, engineSnapshotSchema);
      const bytes = await containers.snapshot(idOf(id), snapshotId);
      return Response.json({ snapshotId, bytes });
    }),
    route("DELETE", new RegExp(`^${enginePaths.snapshotOf("([^/]+)")}$`), async ([snapshotId]) => {
      await removeSnapshot(engine.places, idOf(snapshotId));
      return new Response(null, { status: 204 });
    }),
    route("POST", new RegExp(`^${enginePaths.changes("([^/]+)")}$`), async ([toId], request) => {
      const { fromId, listMax } = await body(request, engineChangesSchema);
      const call = { fromId, toId: idOf(toId), listMax };
      return Response.json(await compareSnapshots(engine.places, call, request.signal));
    }),
  ];
}

function route(method: string, pattern: RegExp, answer: Route["answer"]): Route {
  return { method, pattern, answer };
}

async function answer(routes: Route[], request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const here = routes.filter(({ pattern }) => pattern.test(pathname));
  const found = here.find(({ method }) => method === request.method);
  if (found !== undefined) {
    return await found.answer(found.pattern.exec(pathname)?.slice(1) ?? [], request);
  }
  if (here.length === 0) throw new BerthError("not_found", `the engine has no route ${pathname}`);
  const allow = here.map(({ method }) => method).join(", ");
  throw new BerthError("method_not_allowed", `${pathname} takes ${allow}`);
}

const monitorSchema = z.strictObject({
  startId: z.string(),
  waitMs: wholeNumber(0, limits.monitorWaitMaxMs).prefault(limits.monitorWaitMaxMs),
});

function query(request: Request): Record<string, string> {
  return Object.fromEntries(new URL(request.url).searchParams);
}

/** An id becomes a folder's name: nothing else may pass. */
function idOf(text: string | undefined): string {
  return parse(sandboxIdSchema, text, "id");
}

async function body<T>(request: Request, schema: z.ZodType<T>): Promise<T> {
  let json: unknown;
  try {
    json = await request.json();
  } catch {
    throw new BerthError("bad_json", "the body is not JSON");
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

function isSame(given: string | null, expected: Buffer): boolean {
  const bytes = Buffer.from(given ?? "");
  // A wrong length is no secret; equal ones are compared in a time that does not depend on where they differ.
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}

function refusal(thrown: unknown, requestId: string): Response {
  if (thrown instanceof BerthError) {
    return Response.json(errorBody(thrown, requestId), { status: errors[thrown.code].status });
  }
  log("fault", { requestId, why: thrown instanceof Error ? thrown.stack : String(thrown) });
  const fault = new BerthError(
    "internal",
    "the engine failed; its log has the reason under the request id",
  );
  return Response.json(errorBody(fault, requestId), { status: 500 });
}
