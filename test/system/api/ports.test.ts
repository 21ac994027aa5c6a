/** Servers in a sandbox of a real Berth, reached by both forms of their address. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { post } from "../files/workspace.ts";
import { sharedServerOfFile } from "../shared-server.ts";
import { ask, echoOf, get, open, openSocket, port, serve } from "./ports-server.ts";

type EchoedRequest = { method: string; path: string; headers: [string, string][]; body: string };

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

const server = await sharedServerOfFile();
const id = await server.create();
await serve(server, id);
const opened = await open(server, id);
const forms = [
  ["host", opened.url],
  ["path", opened.pathUrl],
] as const;

describe("servers in a sandbox", () => {
  const requestSeen = async (
    url: string,
    init?: Parameters<typeof get>[1],
  ): Promise<EchoedRequest> => JSON.parse((await get(url, init)).body.toString());

  describe.each(forms)("by their %s address", (form, url) => {
    it("[J7] method, path, query and body arrive as sent, and the response comes back", async () => {
      for (const method of ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
        const text = `${method} ü`;
        // Said by hand: for some methods the client sends no body without a given length.
        const headers = { "content-length": String(Buffer.byteLength(text)) };
        const sent = method === "GET" ? {} : { body: text, headers };
        const seen = await requestSeen(`${url}a%2Fb//c?q=%20x&y=%C3%A4`, { method, ...sent });
        expect(seen).toMatchObject({ method, path: "/a%2Fb//c?q=%20x&y=%C3%A4" });
        if (method !== "GET")
          expect(Buffer.from(seen.body, "latin1").toString()).toBe(`${method} ü`);
      }
      const head = await get(url, { method: "HEAD" });
      expect([head.status, head.body.length]).toEqual([200, 0]);
      expect(head.headers["content-type"]).toBe("application/json");
    });

    it("[J8] the server sees the client's own headers, none of the proxies' and no credential", async () => {
      const sent = {
        ...{ "x-own": "1", accept: "text/x", "user-agent": "me/1", "accept-language": "de" },
        ...{ authorization: `Bearer ${server.key}`, "proxy-authorization": "x", te: "trailers" },
        ...{ "berth-lease": "a", "berth-fence": "9", "berth-port-request": "{}" },
        "keep-alive": "timeout=5",
      };
      const { headers } = await requestSeen(url, { headers: { ...sent, cookie: "c=2" } });
      const names = headers.map(([name]) => name);
      expect(Object.fromEntries(headers)).toMatchObject({
        ...{ "x-own": "1", accept: "text/x", "user-agent": "me/1", "accept-language": "de" },
        host: `127.0.0.1:${port}`,
        "x-forwarded-host": new URL(url).host,
        "x-forwarded-proto": "http",
      });
      expect(
        names.filter((name) => /^berth-|authorization|^te$|^keep-alive$|^cf-/.test(name)),
      ).toEqual([]);
      expect(names.includes("cookie")).toBe(form === "host");
      expect(JSON.stringify(headers)).not.toContain(server.key);
      // Headers that the client did not send are not added: the server could answer in a form that the client cannot read.
      const bare = Object.fromEntries((await requestSeen(url)).headers);
      expect(bare["accept-encoding"]).toBeUndefined();
      expect(bare.accept ?? "*/*").toBe("*/*");
    });

    it("[J8] the client sees the server's headers, and none that only Berth may set", async () => {
      const { headers } = await get(`${url}cookies`);
      expect(headers["set-cookie"] ?? []).toEqual(form === "host" ? ["a=1", "b=2"] : []);
      expect(JSON.stringify(headers)).not.toContain("forged");
      const berthHeaders = Object.keys(headers).filter((name) => name.startsWith("berth-"));
      expect(berthHeaders).toEqual(["berth-request-id"]);
    });

    it("[J9] compressed bytes arrive as the server made them, and nothing requests them on the client's behalf", async () => {
      const accepting = { headers: { "accept-encoding": "gzip" } };
      const { headers, body } = await get(`${url}zipped`, accepting);
      expect(headers["content-encoding"]).toBe("gzip");
      expect(body.length).toBeLessThan(10_000);
      expect(gunzipSync(body).toString()).toBe("zipped text".repeat(10_000));
      const odd = await get(`${url}odd`);
      expect([odd.headers["content-encoding"], odd.body.toString()]).toEqual(["zstd", "odd!"]);
    });

    it("[J10] a response is streamed while the server writes it", async () => {
      const answer = await ask(`${url}stream`);
      const pieces = answer[Symbol.asyncIterator]();
      expect(String((await pieces.next()).value)).toBe("first");
      // The rest is written only after that was read.
      await server.exec(id, "touch /workspace/go");
      let rest = "";
      for await (const piece of pieces) rest += String(piece);
      expect(rest).toBe("last");
      await server.exec(id, "rm /workspace/go");
    });

    it("[J10] a request body is streamed while the client sends it", async () => {
      const body = new PassThrough();
      body.write("one");
      const answer = await ask(`${url}echo`, { method: "POST", body });
      const pieces = answer[Symbol.asyncIterator]();
      expect(String((await pieces.next()).value)).toBe("one");
      body.end("two");
      expect(String((await pieces.next()).value)).toBe("two");
      expect((await pieces.next()).done).toBe(true);
    });

    it("[J11] 40 MB each way arrive unchanged, and fifty concurrent requests each get their own response", async () => {
      const sent = randomBytes(40_000_000);
      const back = await get(`${url}echo`, { method: "POST", body: Readable.from(split(sent)) });
      expect(sha256(back.body)).toBe(sha256(sent));
      const sized = { "content-length": String(sent.length) };
      const second = await get(`${url}echo`, { method: "POST", headers: sized, body: sent });
      expect(sha256(second.body)).toBe(sha256(sent));
      expect((await get(`${url}large`)).body.length).toBe(40_000_000);
      const many = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          requestSeen(`${url}${n}`, { method: "POST", body: `b${n}` }),
        ),
      );
      expect(many.map(({ path, body }) => `${path} ${body}`)).toEqual(
        Array.from({ length: 50 }, (_, n) => `/${n} b${n}`),
      );
    });

    it("[J12] WebSockets work with text, fifty at once, and the handshake reveals nothing of Berth", async () => {
      const authorization = `Bearer ${server.key}`;
      const { socket, headers } = await openSocket(`${url}chat`, { authorization });
      const berthHeaders = Object.keys(headers).filter((name) => name.startsWith("berth-"));
      expect(berthHeaders).toEqual([]);
      expect(await echoOf(socket, "hällo")).toBe("hällo");
      socket.terminate();
      const all = await Promise.all(
        Array.from({ length: 50 }, async (_, n) => {
          const { socket } = await openSocket(`${url}${n}`);
          const back = await echoOf(socket, `n${n}`);
          socket.terminate();
          return back;
        }),
      );
      expect(all).toEqual(Array.from({ length: 50 }, (_, n) => `n${n}`));
    });

    it("[J13] a server that dies during a response cuts it off; later requests get an error with a hint, and start nothing", async () => {
      const answer = await ask(`${url}dies`);
      const pieces = answer[Symbol.asyncIterator]();
      expect(String((await pieces.next()).value)).toBe("begun");
      await server.exec(id, "touch /workspace/go");
      await expect(pieces.next()).rejects.toThrow();
      await server.exec(id, "rm /workspace/go");
      await until("it is down", async () => (await get(url)).status === 502);
      const { body } = await get(url);
      expect(JSON.parse(body.toString())).toMatchObject({
        error: { code: "port_unreachable", hint: expect.any(String) },
      });
      await expect(openSocket(url)).rejects.toThrow(/502/);
      const { state } = (await server.call("GET", `/v1/sandboxes/${id}`)).body;
      expect(state).toBe("running");
      await serve(server, id);
      expect((await get(url)).status).toBe(200);
    });
  });

  it("[J12] WebSockets carry binary and large messages, and the server learns nothing of Berth", async () => {
    const { socket } = await openSocket(opened.pathUrl);
    const large = randomBytes(900_000);
    const answered = once(socket, "message");
    socket.send(large);
    const [back] = await answered;
    expect(sha256(back)).toBe(sha256(large));
    expect(await echoOf(socket, "headers")).not.toMatch(/berth|authorization/);
    socket.close(1000);
    await once(socket, "close");
  });

  it("[J20] public ports are reached without a token by both forms, other ports are not", async () => {
    const label = (sandbox: string) => `${port}-${sandbox}`;
    const urls = (sandbox: string) => [
      opened.url.replace(/\/\/[^.]+\./, `//${label(sandbox)}.`),
      opened.pathUrl.replace(/\/p\/.*/, `/p/${label(sandbox)}/`),
    ];
    for (const url of urls(id)) expect((await get(url)).status).toBe(404);
    const other = await server.create({ publicPorts: true });
    for (const url of urls(other)) expect((await get(url)).status).toBe(502);
    await serve(server, other);
    for (const url of urls(other)) expect((await get(url)).status).toBe(200);
  });

  it("[J14] a request does not wake a paused sandbox, and the address survives pause and start", async () => {
    expect((await post(server, id, "pause")).body.state).toBe("paused");
    for (const [, url] of forms) {
      expect((await get(url)).status).toBe(409);
      await expect(openSocket(url)).rejects.toThrow(/409/);
    }
    expect((await server.call("GET", `/v1/sandboxes/${id}`)).body.state).toBe("paused");
    expect((await post(server, id, "start")).body.state).toBe("running");
    await serve(server, id);
    for (const [, url] of forms) expect((await get(url)).status).toBe(200);
    const newer = await open(server, id);
    for (const [, url] of forms) expect((await get(url)).status).toBe(404);
    expect((await get(newer.url)).status).toBe(200);
  });
});

function* split(bytes: Buffer): Generator<Buffer> {
  for (let offset = 0; offset < bytes.length; offset += 100_000)
    yield bytes.subarray(offset, offset + 100_000);
}
