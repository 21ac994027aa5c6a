/**
 * Selects the headers that pass between a caller and a server in the sandbox: not those of one connection, and not
 * Berth's own.
 */

/** These belong to one connection, not to the message (RFC 9110, 7.6.1). */
const hopByHop = new Set([
  ...["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"],
  ...["upgrade", "proxy-authenticate", "proxy-authorization"],
]);

export function requestHeadersFor(headers: Headers): Headers {
  const passed = selectHeaders(headers);
  passed.delete("authorization");
  // The server gets the host of its own address on the loopback.
  passed.delete("host");
  return passed;
}

export function responseHeadersFrom(headers: Headers): Headers {
  return selectHeaders(headers);
}

function selectHeaders(headers: Headers): Headers {
  const connectionHeaders = new Set(
    (headers.get("connection") ?? "").split(",").map((name) => name.trim().toLowerCase()),
  );
  const passed = new Headers();
  for (const [name, value] of headers) {
    if (hopByHop.has(name) || connectionHeaders.has(name) || name.startsWith("berth-")) continue;
    passed.append(name, value);
  }
  return passed;
}
