/** Explains to a person in a browser why a port address shows nothing. Programs get the error as JSON. */
import { type ErrorBody, errors } from "../../protocol/errors.ts";

export function wantsPage({ method, headers }: Request): boolean {
  const accepted = headers.get("accept") ?? "";
  return (method === "GET" || method === "HEAD") && /\btext\/html\b/.test(accepted);
}

export function refusalPage({ error, requestId }: ErrorBody): Response {
  const { code, message, hint } = error;
  const status = errors[code]?.status ?? 500;
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${status} · Berth</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; margin: 4rem auto; padding: 0 1rem }
  small { color: #666 }
</style>
<h1>This address shows nothing now</h1>
<p>${escapeHtml(message)}</p>
${hint === undefined ? "" : `<p>${escapeHtml(hint)}</p>`}
<p>${explain(status)}</p>
<p><small>${status} ${escapeHtml(code)} · request ${escapeHtml(requestId)}</small></p>
</html>
`;
  return new Response(html, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
  });
}

function explain(status: number): string {
  if (status === 404)
    return "The port may have been closed or opened again, which gives it another address.";
  if (status === 410) return "The sandbox is gone, and its addresses with it.";
  return "It leads to a server in a sandbox. Reload the page once that runs.";
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
