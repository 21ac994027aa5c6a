/** Decides which headers pass between a caller of a port and the server in the sandbox, and what Berth adds. */
import { portRequestHeader } from "../../protocol/internal/socket-call.ts";
import type { PortAddress } from "../../protocol/port.ts";

/** Headers of one connection, not of the message (RFC 9110, 7.6.1). `upgrade` and `connection` open a WebSocket. */
const hopByHop = ["keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"];
const credentials = ["authorization", "proxy-authorization", "proxy-authenticate"];

/** Instructions to a proxy before Berth, which could make it send a file or a page of its own. */
const toProxies = ["x-accel-redirect", "x-sendfile", "x-lighttpd-send-file"];

/**
 * What a response may carry below a path, where all servers share the origin of Berth's API. A header is here if it
 * describes this one response, or restricts what its page may do. Headers that browsers apply to the whole origin or keep
 * beyond the page (Clear-Site-Data, Strict-Transport-Security, NEL, Alt-Svc, Accept-CH, …) are not, and nor is
 * WWW-Authenticate, whose login box would carry Berth's name: browsers show the page of the 401 instead.
 */
const passedBelowPath = new Set([
  // What the bytes are.
  ...["content-type", "content-encoding", "content-language", "content-disposition"],
  ...[
    "content-length",
    "content-range",
    "accept-ranges",
    "digest",
    "repr-digest",
    "content-digest",
  ],
  // How long caches may keep this one URL.
  ...["cache-control", "etag", "last-modified", "expires", "age", "date", "pragma", "vary"],
  // What the caller does next. `link` loads nothing that the page could not load itself.
  ...["location", "link", "allow", "retry-after", "accept-patch", "accept-post"],
  // Which pages may read this response: even its own page has another origin, because it is sandboxed.
  ...["access-control-allow-origin", "access-control-allow-methods"],
  ...["access-control-allow-headers", "access-control-allow-credentials"],
  ...["access-control-expose-headers", "access-control-max-age", "timing-allow-origin"],
  // What only restricts the page itself.
  ...["content-security-policy", "permissions-policy", "cross-origin-opener-policy"],
  ...["cross-origin-embedder-policy", "cross-origin-resource-policy"],
  // A WebSocket, developer tools, and the session of a server of the Model Context Protocol.
  ...["upgrade", "connection", "sec-websocket-protocol", "sourcemap", "mcp-session-id"],
]);

/** Browsers give headers with `x-` no meaning beyond their own page, and APIs name theirs so. */
const isPassedBelowPath = (name: string) => passedBelowPath.has(name) || name.startsWith("x-");

/**
 * On a host of its own a server may speak for that host. Clear-Site-Data goes further: it removes the cookies of the
 * whole registered domain, which are those of other hosts.
 */
const keptFromHost = ["clear-site-data", "set-cookie2"];

/** The headers of a request for the server in the sandbox, as the object gets it. */
export function inwardHeaders(
  { url, headers: given }: { url: string; headers: Headers },
  { port, token, prefix }: PortAddress & { prefix: string | undefined },
  requestId: string,
): Headers {
  const ofConnection = connectionHeaders(given);
  const headers = copyWithout(
    given,
    (name) =>
      hopByHop.includes(name) ||
      credentials.includes(name) ||
      name.startsWith("berth-") ||
      ofConnection.includes(name) ||
      // Below a path all servers share one host, and so its cookies.
      (prefix !== undefined && name === "cookie"),
  );
  const { host, protocol } = new URL(url);
  headers.set("x-forwarded-host", host);
  headers.set("x-forwarded-proto", protocol.slice(0, -1));
  if (prefix !== undefined) headers.set("x-forwarded-prefix", prefix);
  headers.set("berth-request-id", requestId);
  headers.set(portRequestHeader, JSON.stringify({ port, token }));
  return headers;
}

/** The headers of a response for the caller. */
export function outwardHeaders(given: Headers, prefix: string | undefined): Headers {
  const isLeftOut = prefix === undefined ? isKeptFromHost : isKeptBelowPath;
  const headers = copyWithout(
    given,
    (name) =>
      hopByHop.includes(name) ||
      toProxies.includes(name) ||
      name.startsWith("berth-") ||
      isLeftOut(name),
  );
  if (prefix === undefined) bindCookiesToHost(headers);
  else sandboxPage(headers, prefix);
  return headers;
}

const isKeptFromHost = (name: string) => keptFromHost.includes(name);
const isKeptBelowPath = (name: string) => !isPassedBelowPath(name);

/** The page gets an origin of its own: it can neither read nor act as another page of this host. */
function sandboxPage(headers: Headers, prefix: string): void {
  headers.append("content-security-policy", "sandbox allow-scripts allow-forms allow-popups");
  headers.set("referrer-policy", "no-referrer");
  const location = headers.get("location");
  if (location?.startsWith("/") && !location.startsWith("//")) {
    headers.set("location", `${prefix}${location}`);
  }
}

/** With `Domain` a cookie would reach the hosts of the API and of all other ports. */
function bindCookiesToHost(headers: Headers): void {
  const cookies = headers.getSetCookie();
  if (!cookies.some(hasDomain)) return;
  headers.delete("set-cookie");
  for (const cookie of cookies) {
    // The runtime reads other bytes than UTF-8 as this character. A changed cookie is worse than none.
    if (!cookie.includes("\ufffd")) headers.append("set-cookie", withoutDomain(cookie));
  }
}

const isDomain = (attribute: string) => /^\s*domain\s*(=|$)/i.test(attribute);

function hasDomain(cookie: string): boolean {
  return cookie.split(";").slice(1).some(isDomain);
}

function withoutDomain(cookie: string): string {
  const [value = "", ...attributes] = cookie.split(";");
  return [value, ...attributes.filter((attribute) => !isDomain(attribute))].join(";");
}

/** The headers that `Connection` names belong to the connection too. */
function connectionHeaders(headers: Headers): string[] {
  const names = (headers.get("connection") ?? "").split(",");
  return names.map((name) => name.trim().toLowerCase()).filter((name) => name !== "upgrade");
}

/** A copy made by the runtime keeps the bytes of values that are not UTF-8; reading them would replace them. */
function copyWithout(given: Headers, isLeftOut: (name: string) => boolean): Headers {
  const headers = new Headers(given);
  for (const name of [...given.keys()]) if (isLeftOut(name)) headers.delete(name);
  return headers;
}
