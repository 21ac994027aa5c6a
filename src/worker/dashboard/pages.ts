/** Serves the files of the dashboard, with the headers that protect the person who is signed in. */
import type { Context } from "hono";
import { isConfigured } from "../../config.ts";
import type { ApiEnv } from "../http/context.ts";
import { noSuchRoute } from "../http/errors.ts";
import { page as plainPage } from "../http/front-page.ts";

const types: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

/** Previews of ports are framed: they have hosts of their own, so they cannot reach the page around them. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "frame-src *",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const headers = {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** `/`: the dashboard, or a page without scripts where its files or the secrets are missing. */
export async function frontPage(c: Context<ApiEnv>): Promise<Response> {
  const dashboard = isConfigured(c.env) ? await readAsset(c, "index.html") : undefined;
  return dashboard ?? plainPage(c);
}

/** `/assets/:name`. The names of parts contain their hash, so a browser may keep them. */
export async function asset(c: Context<ApiEnv>): Promise<Response> {
  const name = c.req.param("name") ?? "";
  const isPlain = /^[\w-]+\.(js|css|svg)$/.test(name);
  const found = isPlain ? await readAsset(c, `assets/${name}`) : undefined;
  return found ?? noSuchRoute(c);
}

async function readAsset(c: Context<ApiEnv>, path: string): Promise<Response | undefined> {
  const found = await c.env.ASSETS?.fetch(`http://assets/${path}`);
  if (found?.status !== 200) {
    await found?.body?.cancel();
    return undefined;
  }
  const isKept = path.startsWith("assets/part-");
  return new Response(found.body, {
    headers: {
      ...headers,
      "content-type": types[path.split(".").at(-1) ?? ""] ?? "application/octet-stream",
      "cache-control": isKept ? "public, max-age=31536000, immutable" : "no-cache",
    },
  });
}
