/** Raw requests: too long or not HTTP, with internal headers, and to ports of sandboxes. */
import { beforeAll, describe, expect, it } from "vitest";
import { Attacked, get, otherKey, post, put } from "./attacked-server.ts";
import { raw } from "./sockets.ts";

describe("the wire", () => {
  const berth = Attacked.shared();
  let id: string;
  let foreign: string;

  beforeAll(async () => {
    id = await berth.create();
    foreign = await berth.create({ start: false }, otherKey);
  });

  const of = (tail = "") => `/v1/sandboxes/${id}${tail}`;
  it("[SC10] a target or a header that is too long, or not HTTP, is refused and costs nobody else anything", async () => {
    const fresh = await berth.create({ start: false });
    const wrong = [
      `GET /${"a".repeat(200_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
      `GET /v1/sandboxes HTTP/1.1\r\nHost: a\r\nX-Long: ${"h".repeat(200_000)}\r\n\r\n`,
      `GET /v1/sandboxes HTTP/1.1\r\n${"X-Many: a\r\n".repeat(20_000)}\r\n`,
      "GET /\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      `GET ${of()} HTTP/1.1\r\nHost: ${berth.host}\r\nAuthorization: Bearer a\rb\r\n\r\n`,
    ];
    for (const bytes of wrong) {
      const { status } = await raw(berth.server.url, bytes);
      expect(status, bytes.slice(0, 20)).toBeLessThan(500);
      expect(status, bytes.slice(0, 20)).not.toBe(200);
    }
    expect((await berth.ok("GET", `/v1/sandboxes/${fresh}`)).state).toBe("paused");
  });

  it.each([
    ["a space", "a b"],
    ["half an address", "["],
    ["a port that is none", "a:99999"],
    ["two of them", "a\r\nHost: b"],
  ])("[SC10] a host of %s is refused for every caller, as a bad request", async (_, host) => {
    for (const path of ["/", "/v1/sandboxes", of("/files?path=a")]) {
      const bytes = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
      const { status, text } = await raw(berth.server.url, bytes);
      expect([status, text]).toEqual([400, expect.stringContaining('"field":"Host"')]);
    }
  });

  it("[SC10] a body whose chunks are none is refused and changes nothing", async () => {
    const head = [
      `PATCH ${of("/metadata")} HTTP/1.1`,
      `Host: ${berth.host}`,
      `Authorization: Bearer ${berth.server.key}`,
      "Content-Type: application/json",
      "Transfer-Encoding: chunked",
    ];
    for (const chunks of ["zz\r\n{}\r\n0\r\n\r\n", '9\r\n{"a":"b"}0\r\n\r\n']) {
      const { status, text } = await raw(berth.server.url, `${head.join("\r\n")}\r\n\r\n${chunks}`);
      expect([status, text]).toEqual([400, expect.stringContaining('"field":"body"')]);
    }
    expect((await berth.ok("GET", of("/metadata"))).version).toBe(0);
  });

  it("[SC9] a line end in a value of a call reaches no header of an answer", async () => {
    for (const path of [
      of("?colour=a%0D%0ASet-Cookie:%20b=c"),
      of("/files?path=%0D%0ASet-Cookie:b"),
    ]) {
      const { headers } = await berth.send({ method: "GET", path });
      expect(headers["set-cookie"]).toBeUndefined();
    }
    const { headers } = await berth.send({
      method: "GET",
      path: of(),
      headers: { "berth-request-id": "a b<script>" },
    });
    expect(headers["berth-request-id"]).not.toContain("<");
  });

  it("[SC9] headers of our own that come from outside say nothing: neither who calls, nor what for, nor to which agent", async () => {
    const forged = {
      "berth-socket-call": JSON.stringify({
        kind: "lease",
        acquire: { holder: "me", ttlMs: 1000, waitMs: 0 },
        caller: { tenant: "other", rights: ["lease", "admin"] },
      }),
      "berth-port-request": JSON.stringify({ port: 80, token: "a".repeat(26) }),
      "berth-transfer": JSON.stringify({ caller: { tenant: "other" } }),
      "berth-fence": "999999999",
      "berth-incarnation": "aaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaa",
      "berth-tenant": "other",
      "x-forwarded-host": "evil.test",
      "x-forwarded-for": "127.0.0.1",
      "cf-connecting-ip": "127.0.0.1",
      "x-http-method-override": "DELETE",
      "x-original-url": "/v1/sandboxes",
    };
    for (const key of [undefined, null]) {
      for (const tail of ["", "/lease/connect", "/files?path=a", "/metadata"]) {
        const upgrade = tail.includes("connect") ? { upgrade: "websocket" } : {};
        const headers = { ...forged, ...upgrade };
        const path = `/v1/sandboxes/${foreign}${tail}`;
        const call = { method: "GET", path, headers, ...(key === null ? { key } : {}) };
        expect((await berth.send(call)).status).toBe(key === null ? 401 : 404);
      }
    }
    const plain = await berth.send(get(of()));
    const dressed = await berth.send({ ...get(of()), headers: forged });
    expect(dressed.status).toBe(200);
    expect(dressed.body).toEqual(plain.body);
    const ran = await berth.send(post(of("/exec"), { command: "echo ours" }, forged));
    expect(ran.body).toMatchObject({ stdout: "ours\n" });
    const file = put(of("/files?path=forged"), "text/plain", "mine", forged);
    expect((await berth.send(file)).status).toBe(201);
    expect(await berth.exec(id, { command: "cat forged" })).toMatchObject({ stdout: "mine" });
  });

  it("[SC9] a client of a port cannot reach Berth through it, and the server there gets no key", async () => {
    const program = [
      "import http.server as h",
      "class S(h.BaseHTTPRequestHandler):",
      "  def do_GET(s):",
      "    s.send_response(200); s.end_headers(); s.wfile.write((s.path + '\\n' + str(s.headers)).encode())",
      "h.ThreadingHTTPServer(('127.0.0.1', 8000), S).serve_forever()",
    ].join("\n");
    const started = await berth.ok("POST", of("/processes"), { argv: ["python3", "-c", program] });
    await berth.ok("GET", of(`/processes/${started.id}/wait?for=port:8000&timeoutMs=20000`));
    const opened = await berth.ok("POST", of("/ports"), { port: 8000 });
    const { pathname } = new URL(String(opened.pathUrl));
    const headers = { cookie: "a=b", "berth-lease": "token" };
    const visited = await berth.send({ ...get(`${pathname}v1/sandboxes`), headers });
    expect(visited.status).toBe(200);
    expect(visited.text).toMatch(/^\/v1\/sandboxes\n/);
    for (const secret of [berth.server.key, "a=b", "berth-lease", "uthorization"]) {
      expect(visited.text).not.toContain(secret);
    }
    expect(visited.headers["content-security-policy"]).toContain("sandbox");
    for (const up of ["../v1/sandboxes", "..%2fv1%2fsandboxes", "%2e%2e/%2e%2e/v1/sandboxes"]) {
      const { text, status } = await berth.send({ ...get(pathname + up), key: null });
      // It is the server's own again, or Berth's without a key; the path was put right before it was looked at.
      expect([up, [401, 404].includes(status) || text.startsWith("/")]).toEqual([up, true]);
    }
    await berth.ok("DELETE", of(`/processes/${started.id}`));
  });
});
