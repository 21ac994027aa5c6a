/** The heads of requests to a server in a sandbox of a real Berth, and of its responses: which pass, and how much. */
import { beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { post, runPython } from "../files/workspace.ts";
import { sharedServerOfFile } from "../shared-server.ts";
import { get, type Opened, open, port } from "./ports-server.ts";

const server = await sharedServerOfFile();
const id = await server.create();
let opened: Opened;

/** Responds with the head that the path names; otherwise it sends the head of the request back. */
const program = `
import socket
heads = {
  b"/bytes": b"x-a: caf\\xe9\\r\\n",
  b"/origin": b"clear-site-data: \\"*\\"\\r\\nnel: {}\\r\\nwww-authenticate: Basic\\r\\nset-cookie: a=1; Domain=localhost; Path=/\\r\\netag: 1\\r\\n",
  b"/control": b"x-a: \\x01\\r\\n",
}
listener = socket.create_server(("127.0.0.1", ${port}), backlog=64)
while True:
    connection, _ = listener.accept()
    with connection:
        head = b""
        while b"\\r\\n\\r\\n" not in head:
            more = connection.recv(65536)
            if not more: break
            head += more
        if not head: continue
        own = heads.get(head.split(b" ")[1], b"")
        connection.sendall(b"HTTP/1.1 200 OK\\r\\n" + own + b"content-length: %d\\r\\n\\r\\n" % len(head) + head)
`;

beforeAll(async () => {
  await runPython(
    server,
    id,
    "import sys; open('/workspace/heads.py', 'w').write(sys.stdin.read())",
    program,
  );
  const { body } = await post(server, id, "processes", { argv: ["python3", "heads.py"] });
  const wait = `/v1/sandboxes/${id}/processes/${body.id}/wait?for=port:${port}&timeoutMs=20000`;
  expect((await server.call("GET", wait)).status).toBe(200);
  opened = await open(server, id, { wake: true });
});

const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${n}`, "1"]));

describe.each(["url", "pathUrl"] as const)("a server in a sandbox, by its %s", (form) => {
  it("[J17] bytes of header values that are not UTF-8 pass unchanged, both ways", async () => {
    const { headers, body } = await get(`${opened[form]}bytes`, { headers: { "x-b": "th\xe9" } });
    expect(headers["x-a"]).toBe("caf\xe9");
    expect(body.toString("latin1")).toContain("x-b: th\xe9\r\n");
  });

  it("[J17] a header that `Connection` names does not reach the server", async () => {
    const headers = { connection: "close, x-hop", "x-hop": "1", "x-own": "2" };
    const seen = (await get(`${opened[form]}x`, { headers })).body.toString("latin1");
    expect(seen).toContain("x-own: 2\r\n");
    expect(seen).not.toContain("x-hop");
  });

  it("[J16] what a server says about the whole origin stays behind", async () => {
    const { headers } = await get(`${opened[form]}origin`);
    expect(headers.etag).toBe("1");
    expect(headers["clear-site-data"]).toBeUndefined();
    const isOwnHost = form === "url";
    expect(headers["set-cookie"]).toEqual(isOwnHost ? ["a=1; Path=/"] : undefined);
    expect("nel" in headers).toBe(isOwnHost);
    expect("www-authenticate" in headers).toBe(isOwnHost);
  });

  it("[J19] a response that is not valid HTTP is 502 with its reason", async () => {
    const { status, body } = await get(`${opened[form]}control`);
    expect(status).toBe(502);
    const { error } = JSON.parse(body.toString());
    expect(error).toMatchObject({ code: "port_unreachable", reason: "malformed_response", port });
  });

  it("[J18] a long head arrives within the limits, and beyond them is refused by its name", async () => {
    const long = (bytes: number) => "a".repeat(bytes);
    const room = limits.passedHeadBytesMax - 1024;
    const url = opened[form];
    expect((await get(url, { headers: many(limits.passedHeadersMax - 16) })).status).toBe(200);
    expect((await get(url, { headers: { "x-a": long(room) } })).status).toBe(200);
    expect((await get(`${url}?${long(room)}`)).status).toBe(200);
    const refusalOf = async (address: string, headers: Record<string, string> = {}) => {
      const { status, body } = await get(address, { headers });
      const { code, field, retryable } = JSON.parse(body.toString()).error;
      return { status, code, field, retryable };
    };
    const headersTooLarge = {
      ...{ status: 431, code: "headers_too_large", field: "headers", retryable: false },
    };
    const urlTooLong = { status: 414, code: "url_too_long", field: "url", retryable: false };
    for (const count of [limits.passedHeadersMax + 1, 196, 300]) {
      expect(await refusalOf(url, many(count))).toEqual(headersTooLarge);
    }
    for (const bytes of [limits.passedHeadBytesMax, 17_000, 60_000]) {
      expect(await refusalOf(url, { "x-a": long(bytes) })).toEqual(headersTooLarge);
      expect(await refusalOf(`${url}?${long(bytes)}`)).toEqual(urlTooLong);
    }
  });
});

it("[J18] a head that is refused wakes nothing", async () => {
  await post(server, id, "pause");
  const { status } = await get(opened.url, { headers: many(200) });
  expect(status).toBe(431);
  expect((await server.call("GET", `/v1/sandboxes/${id}`)).body.state).toBe("paused");
});
