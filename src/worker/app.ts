/**
 * THE DOOR: the table of contents of the API. Each line leads to the file that serves it.
 */
import { Hono } from "hono";
import { configOf, type Env } from "../config.ts";
import { limits } from "../protocol/limits.ts";
import { routes } from "../protocol/routes.ts";
import { authenticate, type Caller } from "./auth.ts";
import { openApi } from "./openapi.ts";
import { page } from "./page.ts";
import { noSuchRoute, refuse } from "./refusals.ts";
import { execRoute } from "./routes/exec.ts";
import { healthRoute } from "./routes/health.ts";
import { createRoute, destroyRoute, getRoute } from "./routes/sandboxes.ts";

export type Door = { Bindings: Env; Variables: { requestId: string; caller: Caller } };

/** `known` says who calls where that is settled already, by the binding of another Worker. */
export function door(known?: Caller) {
  const app = new Hono<Door>();

  app.use(async (c, next) => {
    c.set("requestId", requestId(c.req.header("berth-request-id")));
    await next();
    // Afterwards: an answer that an object gave brings headers of its own.
    c.header("berth-request-id", c.var.requestId);
  });
  app.use("/v1/*", async (c, next) => {
    c.set("caller", known ?? authenticate(c.req.header("authorization"), configOf(c.env)));
    await next();
  });

  app.get("/", page);
  app.get("/openapi.json", (c) => c.json(openApi()));
  app.get(routes.health.path, healthRoute);

  app.post(routes.createSandbox.path, createRoute);
  app.get(routes.getSandbox.path, getRoute);
  app.delete(routes.destroySandbox.path, destroyRoute);
  app.post(routes.exec.path, execRoute);

  app.notFound(noSuchRoute);
  app.onError(refuse);
  return app;
}

/** The caller's own, where it is one that can stand in a log; else drawn here. */
function requestId(told: string | undefined): string {
  const fits =
    told !== undefined && told.length <= limits.requestIdBytesMax && /^[\w.-]+$/.test(told);
  return fits ? told : crypto.randomUUID();
}
