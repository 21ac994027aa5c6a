/**
 * Owns which headers cross between a caller and a server in the sandbox.
 * Does not own bodies. What is between two neighbours stays there, and so does what is ours.
 */

/** Of one connection, not of the message (RFC 9110, 7.6.1). */
const hopByHop = new Set([
  ...["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"],
  ...["upgrade", "proxy-authenticate", "proxy-authorization"],
]);

export function requestHeadersFor(headers: Headers): Headers {
  const passed = passedOf(headers);
  passed.delete("authorization");
  // The server is asked as what it is: something on the sandbox's loopback.
  passed.delete("host");
  return passed;
}

export function answerHeadersFrom(headers: Headers): Headers {
  return passedOf(headers);
}

function passedOf(headers: Headers): Headers {
  const named = new Set(
    (headers.get("connection") ?? "").split(",").map((name) => name.trim().toLowerCase()),
  );
  const passed = new Headers();
  for (const [name, value] of headers) {
    if (hopByHop.has(name) || named.has(name) || name.startsWith("berth-")) continue;
    passed.append(name, value);
  }
  return passed;
}
