/** The HTTP API: a route for each row of the table of verbs, derived from the row or in `special`. */
import { Hono, type MiddlewareHandler } from "hono";
import { readConfig } from "../config.ts";
import type { CallableVerb } from "../objects/sandbox/dispatch/verb-call.ts";
import { quotaOf } from "../protocol/fields/quota.ts";
import { limits } from "../protocol/limits.ts";
import type { Caller } from "../protocol/rights.ts";
import { type VerbName, type VerbRow, verbs } from "../protocol/verbs.ts";
import { drainBody } from "../runtime/bodies.ts";
import { logCall } from "./access-log.ts";
import { admitted } from "./admission.ts";
import { authenticate, isAdministrator, requireRights } from "./auth/auth.ts";
import { callsAtOnce } from "./calls-at-once.ts";
import { asset, frontPage } from "./dashboard/pages.ts";
import { authorizationOf, createSignIn, getCaller, signIn, signOut } from "./dashboard/session.ts";
import { refuseWhenDiskFull } from "./disk.ts";
import { readNothing } from "./http/body.ts";
import type { ApiContext, ApiEnv, Handler } from "./http/context.ts";
import { allowOrigins } from "./http/cors.ts";
import { noSuchRoute, refuse } from "./http/errors.ts";
import { bytesType, eventStreamType } from "./http/headers.ts";
import { openApi } from "./http/openapi.ts";
import { checkQuery } from "./http/query.ts";
import { connectTicket } from "./http/socket.ts";
import { verbHandler } from "./http/verb-handler.ts";
import { metrics } from "./metrics/metrics.ts";
import { calls } from "./metrics/registry.ts";
import * as ports from "./ports/port-traffic.ts";
import { refusalPage, wantsPage } from "./ports/refusal-page.ts";
import { create } from "./special/create.ts";
import * as events from "./special/events.ts";
import * as files from "./special/files.ts";
import { health } from "./special/health.ts";
import * as images from "./special/images.ts";
import * as keys from "./special/keys.ts";
import * as lease from "./special/lease.ts";
import { logs } from "./special/logs.ts";
import * as metadata from "./special/metadata.ts";
import * as plans from "./special/plans.ts";
import * as templates from "./special/templates.ts";
import * as terminals from "./special/terminals.ts";
import * as tokens from "./special/tokens.ts";
import { callerOfWire, serveWires } from "./wires.ts";

const special = {
  health,
  createSandbox: create,
  listSandboxes: events.list,
  countSandboxes: events.count,
  listTenantEvents: events.ofTenant,
  listEvents: events.ofSandbox,
  createKey: keys.create,
  listKeys: keys.list,
  removeKey: keys.remove,
  replaceFileKeys: keys.replaceFile,
  createSignIn,
  signIn,
  getCaller,
  signOut,
  listImages: images.list,
  getImage: images.get,
  pullImage: images.pull,
  importImage: images.importArchive,
  removeImage: images.remove,
  buildTemplate: templates.build,
  listTemplates: templates.list,
  getTemplate: templates.get,
  readTemplateLog: templates.log,
  cancelTemplateBuild: templates.cancel,
  removeTemplate: templates.remove,
  acquireLease: lease.acquire,
  renewLease: lease.renew,
  releaseLease: lease.release,
  connectLease: lease.connect,
  getMetadata: metadata.get,
  patchMetadata: metadata.patch,
  replaceMetadata: metadata.replace,
  createToken: tokens.create,
  openPort: ports.open,
  processLogs: logs,
  connectTerminal: terminals.connect,
  readFile: files.read,
  writeFile: files.write,
  watchFiles: files.watch,
  downloadArchive: files.downloadArchive,
  uploadArchive: files.uploadArchive,
  listPlans: plans.list,
  putPlan: plans.put,
  getPlan: plans.get,
  removePlan: plans.remove,
  putMember: plans.putMember,
  removeMember: plans.removeMember,
  commitPlan: plans.commit,
  rollbackPlan: plans.rollback,
  listCommits: plans.listCommits,
  getCommit: plans.getCommit,
} satisfies Partial<Record<VerbName, Handler>>;

/** The object serves every verb that is not special: a row that nothing serves does not compile here. */
type Derived<Name extends CallableVerb> = Name;
type DerivedVerb = Derived<Exclude<VerbName, keyof typeof special>>;

function handlerOf(name: VerbName): Handler {
  return (
    (special as Partial<Record<VerbName, Handler>>)[name] ??
    verbHandler(name as DerivedVerb, verbs[name])
  );
}

/** Browsers cannot send a key when they open a WebSocket: the object checks their connect ticket. */
const withTicket: readonly VerbRow[] = [verbs.connectLease, verbs.connectTerminal];

/** `caller`: of a request that came by the binding of another Worker. */
export function createApp(caller?: Caller) {
  const app = new Hono<ApiEnv>();
  app.use(async (c, next) => {
    c.set("requestId", requestId(c.req.header("berth-request-id")));
    c.set("isBound", caller !== undefined);
    await next();
    if (c.res.status >= 400) await drainBody(c.req.raw);
    // After the handler, because the response of an object has headers of its own.
    if (c.res.webSocket !== null) return;
    setHeader(c as ApiContext, "berth-request-id", c.get("requestId"));
    if (isLive(c.res)) forbidBuffering(c as ApiContext);
  });
  if (caller === undefined) app.use(serveWires((...request) => app.fetch(...request)));
  app.use(async (c, next) => {
    const request = ports.portRequestOf(c.req.raw);
    if (request === undefined) return next();
    try {
      c.res = await ports.forwardPortRequest(c.env, c.req.raw, request, c.get("requestId"));
    } catch (error) {
      const refusal = refuse(error, c);
      c.res = wantsPage(c.req.raw) ? refusalPage(await refusal.json()) : refusal;
    }
  });
  app.use(allowOrigins);
  app.get("/", frontPage);
  app.get("/assets/:name", asset);
  app.get("/metrics", (c) => metrics(c));
  app.get("/openapi.json", (c) => c.json(openApi()));
  for (const name of Object.keys(verbs) as VerbName[]) {
    const row: VerbRow = verbs[name];
    const handler = handlerOf(name);
    app.on(row.method, row.path, observed(name), async (c) => {
      const checking = authorize(c as ApiContext, row, caller);
      if (checking !== undefined) await checking;
      if (c.req.url.includes("?")) checkQuery(name, new URL(c.req.url).search);
      const leave = enterCall(c as ApiContext);
      return admitted(c as ApiContext, row, async () => {
        if (row.takesDisk === true) await refuseWhenDiskFull(c.env);
        if (row.body === undefined && row.method !== "GET") await readNothing(c.req.raw);
        return handler(c as ApiContext);
      }).finally(leave);
    });
  }
  app.use("/v1/*", async (c, next) => {
    c.set("caller", caller ?? (await authenticate(authorizationOf(c), c.env)));
    await next();
  });
  app.notFound(noSuchRoute);
  app.onError(refuse);
  return app;
}

/** Counts and logs the call when its response begins, and also a refused one. */
function observed(name: VerbName): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const began = Date.now();
    try {
      await next();
    } finally {
      const ms = Date.now() - began;
      calls.record(name, c.res.status, ms);
      logCall(c as ApiContext, name, c.res.status, ms);
    }
  };
}

/** A call without a tenant is of an administrator, or has a ticket: only counted. */
function enterCall(c: ApiContext): () => void {
  const { tenant } = (c.get("caller") ?? {}) as Partial<Caller>;
  if (tenant === undefined) return callsAtOnce.enter("");
  return callsAtOnce.enter(tenant, quotaOf(readConfig(c.env).quotas, tenant).callsAtOnce);
}

/** Without a promise where none is needed: it would cost every call of a key of the variables. */
function authorize(
  c: ApiContext,
  row: VerbRow,
  bound: Caller | undefined,
): undefined | Promise<void> {
  if (row.right === undefined) return undefined;
  const header = authorizationOf(c);
  const isForAdministrators = row.right === "administrator" && bound === undefined;
  if (isForAdministrators && isAdministrator(header, c.env)) return undefined;
  if (withTicket.includes(row) && connectTicket(c) !== undefined) return undefined;
  const caller = bound ?? callerOfWire(c.req.raw) ?? authenticate(header, c.env);
  return caller instanceof Promise
    ? caller.then((known) => admitCaller(c, row, known))
    : void admitCaller(c, row, caller);
}

function admitCaller(c: ApiContext, row: VerbRow, caller: Caller): void {
  requireRights(caller, row, c.req.param("id"));
  c.set("caller", caller);
}

/** Bytes that a reader waits for. Files and archives are read as a whole. */
function isLive({ headers }: Response): boolean {
  const type = headers.get("content-type") ?? "";
  return type.startsWith(eventStreamType) || (type === bytesType && !headers.has("content-length"));
}

/** A proxy that collects or compresses the bytes of a stream would hold them back: nginx obeys the first, others the second. */
function forbidBuffering(c: ApiContext): void {
  setHeader(c, "x-accel-buffering", "no");
  setHeader(c, "cache-control", "no-store, no-transform");
}

/** The headers of a response from elsewhere are immutable: `c.header` copies such a response. */
function setHeader(c: ApiContext, name: string, value: string): void {
  try {
    c.res.headers.set(name, value);
  } catch {
    c.header(name, value);
  }
}

/** The caller's own id if a log can contain it, otherwise a new one. */
function requestId(given: string | undefined): string {
  const isUsable =
    given !== undefined && given.length <= limits.requestIdBytesMax && /^[\w.-]+$/.test(given);
  return isUsable ? given : crypto.randomUUID();
}
