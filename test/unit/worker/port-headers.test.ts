import { describe, expect, it } from "vitest";
import { inwardHeaders, outwardHeaders } from "../../../src/worker/ports/headers.ts";

const prefix = "/p/8000-a-b";

/** Each is applied to a whole origin, kept beyond the page, or shown in the name of the host. */
const aboutTheOrigin = {
  "accept-ch": "Sec-CH-UA",
  "alt-svc": 'h3=":443"',
  "attribution-reporting-register-source": "{}",
  "clear-site-data": '"*"',
  "critical-ch": "Sec-CH-UA",
  "content-security-policy-report-only": "default-src 'none'; report-uri https://a.test",
  nel: '{"report_to":"a","max_age":1000}',
  "origin-agent-cluster": "?1",
  refresh: "0; url=https://a.test",
  "report-to": '{"group":"a"}',
  "reporting-endpoints": 'a="https://a.test"',
  "service-worker-allowed": "/",
  "set-cookie": "a=1",
  "set-cookie2": "a=1",
  "speculation-rules": '"/rules.json"',
  "strict-transport-security": "max-age=1000",
  "www-authenticate": "Basic realm=Berth",
  "x-accel-redirect": "/etc/passwd",
  "x-sendfile": "/etc/passwd",
};

const aboutTheResponse = {
  "access-control-allow-origin": "null",
  "cache-control": "max-age=60",
  "content-disposition": "attachment",
  "content-encoding": "gzip",
  "content-range": "bytes 0-1/2",
  "content-type": "text/html",
  etag: '"1"',
  "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT",
  "retry-after": "1",
  vary: "Accept",
  "x-total-count": "3",
};

const keysOf = (headers: Headers) => [...headers.keys()].sort();

describe("the headers of a response from a server in a sandbox", () => {
  it("[J16] below a path they are about this response alone, and none is about the origin", () => {
    const passed = outwardHeaders(new Headers({ ...aboutTheOrigin, ...aboutTheResponse }), prefix);
    const added = ["content-security-policy", "referrer-policy"];
    expect(keysOf(passed)).toEqual([...Object.keys(aboutTheResponse), ...added].sort());
    for (const [name, value] of Object.entries(aboutTheResponse)) {
      expect(passed.get(name)).toBe(value);
    }
    expect(passed.get("content-security-policy")).toMatch(/^sandbox /);
  });

  it("[J16] on a host of its own a server speaks for that host, and its cookies stay there", () => {
    const given = new Headers({ ...aboutTheOrigin, ...aboutTheResponse });
    given.delete("set-cookie");
    const cookies = [
      "a=1; Domain=berth.test; Path=/",
      "b=Domain=kept; path=/;DOMAIN=.berth.test",
      "c=3; Secure; domain",
      "__Host-d=4; HttpOnly",
    ];
    for (const cookie of cookies) given.append("set-cookie", cookie);
    const passed = outwardHeaders(given, undefined);
    expect(passed.getSetCookie()).toEqual([
      "a=1; Path=/",
      "b=Domain=kept; path=/",
      "c=3; Secure",
      "__Host-d=4; HttpOnly",
    ]);
    const left = ["clear-site-data", "set-cookie2", "x-accel-redirect", "x-sendfile"];
    const all = Object.keys({ ...aboutTheOrigin, ...aboutTheResponse });
    expect(new Set(passed.keys())).toEqual(new Set(all.filter((name) => !left.includes(name))));
  });
});

describe("the headers of a request for a server in a sandbox", () => {
  const inward = (headers: Record<string, string>) =>
    inwardHeaders(
      { url: "http://berth.test/", headers: new Headers(headers) },
      { port: 8000, sandbox: "a", token: "b", prefix },
      "request",
    );

  it("[J17] those that `Connection` names stay on their connection", () => {
    const passed = inward({ connection: "Upgrade, X-Hop , close", "x-hop": "1", "x-own": "2" });
    expect(passed.get("x-hop")).toBeNull();
    expect(passed.get("x-own")).toBe("2");
    expect(inward({ connection: "upgrade", upgrade: "websocket" }).get("upgrade")).toBe(
      "websocket",
    );
  });

  it("[J17] a header that `Connection` names cannot remove what Berth adds", () => {
    const passed = inward({ connection: "x-forwarded-host, berth-port-request" });
    expect(passed.get("x-forwarded-host")).toBe("berth.test");
    expect(passed.get("berth-port-request")).toContain("8000");
  });
});
