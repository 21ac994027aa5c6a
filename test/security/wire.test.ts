/** What is sent on the wire itself: requests that two servers could read in two ways, and headers of our own. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacked, otherKey } from "./attacked.ts";
import { raw } from "./sockets.ts";

describe("the wire", () => {
  let berth: Attacked;
  let id: string;
  let theirs: string;

  beforeAll(async () => {
    berth = await Attacked.start();
    id = await berth.create();
    theirs = await berth.create({ start: false }, otherKey);
  });

  afterAll(async () => {
    expect(await berth.end()).toEqual([]);
  });

  const of = (tail = "") => `/v1/sandboxes/${id}${tail}`;
  const head = (...lines: string[]) =>
    [`POST ${of("/touch")} HTTP/1.1`, `Host: ${berth.host}`, ...lines].join("\r\n");
  const authorized = () => `Authorization: Bearer ${berth.server.key}`;
  /** What an attacker would have the server run behind the back of the one in front. */
  const smuggled = () =>
    `PATCH ${of("/metadata")} HTTP/1.1\r\nHost: ${berth.host}\r\n${authorized()}\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{"smuggled":"1"}`;
  const unharmed = async () => {
    expect(await berth.ok("GET", of("/metadata"))).toMatchObject({ metadata: {}, version: 0 });
    expect(await berth.exec(id, { command: "echo on" })).toMatchObject({ stdout: "on\n" });
  };

  it("[SC10] a well-formed pair of requests on one connection is two: the attacks below differ from it in one thing", async () => {
    const patch = smuggled().replaceAll("smuggled", "welcomed");
    const answer = await raw(
      berth.server.url,
      `${head(authorized(), "Content-Length: 0")}\r\n\r\n${patch}`,
    );
    expect(answer.text.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
    const cleared = JSON.stringify({ welcomed: null });
    await berth.ok("PATCH", of("/metadata"), JSON.parse(cleared));
    id = await berth.create();
    await unharmed();
  });

  it.each<[string, (size: number) => string[]]>([
    ["two lengths", (size) => ["Content-Length: 0", `Content-Length: ${size}`]],
    ["two lengths in one line", (size) => [`Content-Length: 0, ${size}`]],
    ["a length with a sign", (size) => [`Content-Length: +${size}`]],
    ["a negative length", () => ["Content-Length: -1"]],
    ["a length in hexadecimal", (size) => [`Content-Length: 0x${size.toString(16)}`]],
    ["a length beyond all numbers", () => ["Content-Length: 99999999999999999999"]],
    ["an unknown coding", () => ["Transfer-Encoding: xchunked"]],
    ["a coding after another", () => ["Transfer-Encoding: chunked, identity"]],
    ["a space before the colon", (size) => [`Content-Length : ${size}`]],
    ["a folded line", (size) => ["X-Fold: a", ` Content-Length: ${size}`]],
    ["a NUL in a name", (size) => [`Content-Length\0: ${size}`]],
    ["a line without a colon", () => ["no colon here"]],
    ["a name of nothing", () => [": nothing"]],
  ])("[SC10] %s: nothing behind it is taken for a request", async (_what, lines) => {
    const behind = smuggled();
    const bytes = `${head(authorized(), ...lines(behind.length))}\r\n\r\n${behind}`;
    const { status, text } = await raw(berth.server.url, bytes);
    expect(text).not.toContain('"smuggled"');
    expect(status).toBeLessThan(500);
    await unharmed();
  });

  it("[SC10] a chunked body that also tells a length, and chunks that lie, hide no second request", async () => {
    const behind = smuggled();
    const both = head(
      authorized(),
      `Content-Length: ${behind.length + 5}`,
      "Transfer-Encoding: chunked",
    );
    const lies = head(authorized(), "Transfer-Encoding: chunked");
    const bodies = [
      `${both}\r\n\r\n0\r\n\r\n${behind}`,
      `${lies}\r\n\r\n-1\r\n${behind}`,
      `${lies}\r\n\r\nfffffffffffffffff\r\n${behind}`,
      `${lies}\r\n\r\n0x10\r\n${behind}`,
      `${lies}\r\n\r\n2\r\n{}${behind}`,
    ];
    const answers = await Promise.all(bodies.slice(1).map((bytes) => raw(berth.server.url, bytes)));
    for (const { text } of answers) expect(text).not.toContain('"smuggled"');
    // The codings of a transfer win over a length (RFC 9112, 6.3): a server in front that reads it otherwise must refuse it.
    const { status } = await raw(berth.server.url, bodies[0] ?? "");
    expect(status).toBeLessThan(500);
    expect(await berth.exec(id, { command: "echo on" })).toMatchObject({ stdout: "on\n" });
  });

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
      expect([bytes.slice(0, 20), status >= 500, status === 200]).toEqual([
        bytes.slice(0, 20),
        false,
        false,
      ]);
    }
    expect((await berth.ok("GET", `/v1/sandboxes/${fresh}`)).state).toBe("paused");
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
      "berth-visit": JSON.stringify({ port: 80, token: "a".repeat(26) }),
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
        const path = `/v1/sandboxes/${theirs}${tail}`;
        const call = { method: "GET", path, headers, ...(key === null ? { key } : {}) };
        expect((await berth.send(call)).status).toBe(key === null ? 401 : 404);
      }
    }
    const plain = await berth.send({ method: "GET", path: of() });
    const dressed = await berth.send({ method: "GET", path: of(), headers: forged });
    expect(dressed.status).toBe(200);
    expect(dressed.body).toEqual(plain.body);
    const body = JSON.stringify({ command: "echo ours" });
    const ran = await berth.send({ method: "POST", path: of("/exec"), headers: forged, body });
    expect(ran.body).toMatchObject({ stdout: "ours\n" });
    const files = {
      method: "PUT",
      path: of("/files?path=forged"),
      body: "mine",
      headers: { ...forged, "content-type": "text/plain" },
    };
    expect((await berth.send(files)).status).toBe(201);
    expect(await berth.exec(id, { command: "cat forged" })).toMatchObject({ stdout: "mine" });
  });

  it("[SC9] a visitor of a port cannot reach Berth by it, and the server there is told no key", async () => {
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
    const visited = await berth.send({
      method: "GET",
      path: `${pathname}v1/sandboxes`,
      headers: { cookie: "a=b", "berth-lease": "token" },
    });
    expect(visited.status).toBe(200);
    expect(visited.text).toMatch(/^\/v1\/sandboxes\n/);
    for (const secret of [berth.server.key, "a=b", "berth-lease", "uthorization"]) {
      expect(visited.text).not.toContain(secret);
    }
    expect(visited.headers["content-security-policy"]).toContain("sandbox");
    for (const up of ["../v1/sandboxes", "..%2fv1%2fsandboxes", "%2e%2e/%2e%2e/v1/sandboxes"]) {
      const { text, status } = await berth.send({ method: "GET", path: pathname + up, key: null });
      // It is the server's own again, or Berth's without a key; the path was put right before it was looked at.
      expect([up, [401, 404].includes(status) || text.startsWith("/")]).toEqual([up, true]);
    }
    await berth.ok("DELETE", of(`/processes/${started.id}`));
  });
});
