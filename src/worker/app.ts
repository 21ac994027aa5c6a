/**
 * THE DOOR: the table of contents of the API. Each line leads to the file that serves it.
 */
import { type Context, Hono } from "hono";
import { configOf, type Env } from "../config.ts";
import { limits } from "../protocol/limits.ts";
import type { Caller } from "../protocol/rights.ts";
import { type Route, type RouteName, routes } from "../protocol/verbs.ts";
import { readOut } from "../runtime/unread-body.ts";
import { authenticate, demandFor } from "./auth/auth.ts";
import { readNothing } from "./http/body.ts";
import { otherOrigins } from "./http/cors.ts";
import { noSuchRoute, refuse } from "./http/errors.ts";
import { checkQuery } from "./http/query-params.ts";
import { connectTicket } from "./http/socket.ts";
import { openApi } from "./openapi.ts";
import { page } from "./page.ts";
import { visit, visitOf } from "./ports/port-traffic.ts";
import * as archives from "./routes/archives.ts";
import * as checkpoints from "./routes/checkpoints.ts";
import * as directory from "./routes/directory.ts";
import * as events from "./routes/events.ts";
import { exec } from "./routes/exec.ts";
import * as files from "./routes/files.ts";
import * as git from "./routes/git.ts";
import { health } from "./routes/health.ts";
import * as lease from "./routes/lease.ts";
import * as metadata from "./routes/metadata.ts";
import * as plans from "./routes/plans.ts";
import * as ports from "./routes/ports.ts";
import * as processes from "./routes/processes.ts";
import * as sandboxes from "./routes/sandboxes.ts";
import * as sessions from "./routes/sessions.ts";
import * as terminals from "./routes/terminals.ts";
import * as tokens from "./routes/tokens.ts";

export type Door = {
  Bindings: Env;
  Variables: {
    requestId: string;
    caller: Caller;
    /** Another Worker asks, by its binding. */
    isBound: boolean;
  };
};

export type Handler = (c: Context<Door, "/:id">) => Response | Promise<Response>;

const handlers: Record<RouteName, Handler> = {
  health,
  createSandbox: sandboxes.create,
  listSandboxes: directory.list,
  countSandboxes: directory.counts,
  listTenantEvents: events.ofTenant,
  getSandbox: sandboxes.get,
  destroySandbox: sandboxes.destroy,
  startSandbox: sandboxes.start,
  pauseSandbox: sandboxes.pause,
  touchSandbox: sandboxes.touch,
  exec,
  acquireLease: lease.acquire,
  renewLease: lease.renew,
  releaseLease: lease.release,
  getLease: lease.get,
  connectLease: lease.connect,
  getMetadata: metadata.get,
  patchMetadata: metadata.patch,
  replaceMetadata: metadata.replace,
  listEvents: events.ofSandbox,
  createToken: tokens.create,
  revokeTokens: tokens.revoke,
  createTicket: tokens.ticket,
  makeCheckpoint: checkpoints.make,
  listCheckpoints: checkpoints.list,
  getCheckpoint: checkpoints.get,
  removeCheckpoint: checkpoints.remove,
  restoreCheckpoint: checkpoints.restore,
  openPort: ports.open,
  listPorts: ports.list,
  closePort: ports.close,
  startProcess: processes.start,
  listProcesses: processes.list,
  getProcess: processes.get,
  endProcess: processes.end,
  processLogs: processes.logs,
  waitForProcess: processes.wait,
  writeStdin: processes.stdin,
  signalProcess: processes.signal,
  createSession: sessions.create,
  listSessions: sessions.list,
  getSession: sessions.get,
  endSession: sessions.end,
  execInSession: sessions.exec,
  startProcessInSession: sessions.startProcess,
  createTerminal: terminals.create,
  listTerminals: terminals.list,
  getTerminal: terminals.get,
  resizeTerminal: terminals.resize,
  endTerminal: terminals.end,
  terminalScreen: terminals.screen,
  connectTerminal: terminals.connect,
  readFile: files.read,
  writeFile: files.write,
  removeFile: files.remove,
  statFile: files.stat,
  listFiles: files.list,
  watchFiles: files.watch,
  makeFolder: files.mkdir,
  moveFile: files.move,
  downloadArchive: archives.get,
  uploadArchive: archives.put,
  cloneRepository: git.clone,
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
};

/** A browser's WebSocket can carry no key: its connect ticket is spent by the object. */
const byTicket: readonly Route[] = [routes.connectLease, routes.connectTerminal];

/** `known` says who calls where that is settled already, by the binding of another Worker. */
export function door(known?: Caller) {
  const app = new Hono<Door>();
  app.use(async (c, next) => {
    c.set("requestId", requestId(c.req.header("berth-request-id")));
    c.set("isBound", known !== undefined);
    await next();
    if (c.res.status >= 400) await readOut(c.req.raw);
    // Afterwards: an answer that an object gave brings headers of its own.
    if (c.res.webSocket === null) name(c);
  });
  app.use(async (c, next) => {
    const to = visitOf(c.req.raw);
    if (to === undefined) return next();
    c.res = await visit(c.env, c.req.raw, to, c.get("requestId"));
  });
  app.use(otherOrigins);
  app.get("/", page);
  app.get("/openapi.json", (c) => c.json(openApi()));
  for (const name of Object.keys(routes) as RouteName[]) {
    const route: Route = routes[name];
    app.on(route.method, route.path, async (c) => {
      admit(c as Context<Door, "/:id">, route, known);
      if (c.req.url.includes("?")) checkQuery(name, new URL(c.req.url).search);
      if (route.body === undefined && route.method !== "GET") await readNothing(c.req.raw);
      return handlers[name](c as Context<Door, "/:id">);
    });
  }
  app.use("/v1/*", async (c, next) => {
    c.set("caller", known ?? authenticate(c.req.header("authorization"), configOf(c.env)));
    await next();
  });
  app.notFound(noSuchRoute);
  app.onError(refuse);
  return app;
}

function admit(c: Context<Door, "/:id">, route: Route, known: Caller | undefined): void {
  if (route.right === undefined) return;
  if (byTicket.includes(route) && connectTicket(c) !== undefined) return;
  const caller = known ?? authenticate(c.req.header("authorization"), configOf(c.env));
  demandFor(caller, route, c.req.param("id"));
  c.set("caller", caller);
}

/** An answer that was made here is written on; `c.header` would copy it, which only one from elsewhere needs. */
function name(c: Context<Door>): void {
  try {
    c.res.headers.set("berth-request-id", c.get("requestId"));
  } catch {
    c.header("berth-request-id", c.get("requestId"));
  }
}

/** The caller's own, where it is one that can stand in a log; else drawn here. */
function requestId(told: string | undefined): string {
  const fits =
    told !== undefined && told.length <= limits.requestIdBytesMax && /^[\w.-]+$/.test(told);
  return fits ? told : crypto.randomUUID();
}
