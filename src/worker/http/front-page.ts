/** The page at `/`: what this is, and where to read on. */
import type { Context } from "hono";
import { isConfigured, readConfig, unconfigured } from "../../config.ts";
import type { ApiEnv } from "./context.ts";
import { version } from "./version.ts";

const html = (url: string, note: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Berth</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto; padding: 0 1rem }
  pre { background: #f4f4f2; padding: 1rem; overflow-x: auto }
  code { font: 14px/1.5 ui-monospace, monospace }
</style>
<h1>Berth <small>${version}</small></h1>
<p>Sandboxes for agents, CI jobs and people: isolated Linux workspaces.</p>
${note}<ul>
  <li><a href="/openapi.json">openapi.json</a>: every route with its fields and errors</li>
  <li><a href="/health">health</a>: whether Berth works, and how it isolates sandboxes</li>
</ul>
<pre><code>curl -X POST -H "Authorization: Bearer $KEY" ${url}/v1/sandboxes
curl -X POST -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"command":"uname -a"}' ${url}/v1/sandboxes/ID/exec</code></pre>
</html>
`;

function asHtml(text: string): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return escaped.replace(/`([^`]*)`/g, "<code>$1</code>");
}

export function page(c: Context<ApiEnv>): Response {
  c.header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'");
  const { origin } = new URL(c.req.url);
  if (isConfigured(c.env))
    return c.html(html(readConfig(c.env).publicUrl ?? origin, "")) as Response;
  const note = `<p><strong>Not ready yet.</strong> ${asHtml(unconfigured)}</p>\n`;
  return c.html(html(origin, note)) as Response;
}
