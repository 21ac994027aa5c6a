import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";
import { startOddServer } from "../odd-server.ts";
import { type SandboxServer, startServer, zipped } from "../sandbox-server.ts";

describe("ports of servers in the sandbox", () => {
  const agent = Agent.forBlock();
  let server: SandboxServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.close());

  const port = (path: string, init: RequestInit = {}) =>
    agent.request(`/v1/ports/${server.port}${path}`, { redirect: "manual", ...init });

  test("[X26] method, path, query, status and body pass, the path exactly as written", async () => {
    const answer = await port("/a%2Fb//c?q=%20x&y", { method: "PUT", body: "x" });
    expect(answer.status).toBe(404);
    expect(await answer.text()).toBe("PUT /a%2Fb//c?q=%20x&y");
    expect(await (await port("")).text()).toBe("GET /");
  });

  test("[X26] headers pass, except those of the connection, the secret and Berth's own", async () => {
    const answer = await port("/echo", {
      headers: { "x-own": "1", cookie: "c=2", "berth-fence": "1", "proxy-authorization": "x" },
    });
    await answer.text();
    const { headers } = server.seen();
    expect(headers).toMatchObject({
      "x-own": "1",
      cookie: "c=2",
      host: `127.0.0.1:${server.port}`,
    });
    for (const name of ["authorization", "berth-fence", "te"])
      expect(headers).not.toHaveProperty(name);
    expect(JSON.stringify(server.seen().rawHeaders)).not.toContain(agent.secret);
  });

  test("[X26] a server cannot forge the agent's own headers", async () => {
    const answer = await port("/empty");
    expect(answer.status).toBe(204);
    expect(answer.headers.get("x-own")).toBe("kept");
    expect(answer.headers.get("berth-incarnation")).toBe(agent.incarnation);
  });

  test("[X26] redirects and cookies are the caller's, compressed bytes stay as they are", async () => {
    const redirect = await port("/redirect");
    expect(redirect.status).toBe(302);
    expect(redirect.headers.get("location")).toBe("/else");
    expect(redirect.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    const raw = await new Promise<Buffer>((resolve, reject) => {
      const headers = { authorization: `Bearer ${agent.secret}`, "accept-encoding": "gzip" };
      const url = `${agent.url}/v1/ports/${server.port}/zipped`;
      httpRequest(url, { headers }, (response) => {
        expect(response.headers["content-encoding"]).toBe("gzip");
        const chunks: Buffer[] = [];
        response.on("data", (bytes) => chunks.push(bytes));
        response.on("end", () => resolve(Buffer.concat(chunks)));
      })
        .on("error", reject)
        .end();
    });
    expect(raw.equals(zipped)).toBe(true);
  });

  test("[X27] bodies stream both ways at once: a response can be read before its request is complete", async () => {
    const sent = new TransformStream<Uint8Array, Uint8Array>();
    const writer = sent.writable.getWriter();
    const answering = port("/echo", {
      method: "POST",
      body: sent.readable,
      duplex: "half",
    } as RequestInit);
    writer.write(Buffer.from("first"));
    const answer = await answering;
    const reader = answer.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? "").toString()).toBe("first");
    writer.write(Buffer.from("second"));
    expect(Buffer.from((await reader?.read())?.value ?? "").toString()).toBe("second");
    writer.close();
    expect((await reader?.read())?.done).toBe(true);
  });

  test("[X27] 20 MB each way arrive unchanged, without being buffered in the agent", async () => {
    const bytes = randomBytes(20_000_000);
    const before = agent.memoryKiB();
    const answer = await port("/echo", { method: "POST", body: bytes });
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
    await agent.keepsLessThan(40 * 1024, before);
  });

  test("[X27] the server notices that a caller disconnects", async () => {
    const caller = new AbortController();
    const before = server.aborted();
    const answer = await port("/never", { signal: caller.signal });
    expect(answer.status).toBe(200);
    expect(server.aborted()).toBe(before);
    caller.abort();
    await until("the server noticed", () => server.aborted() === before + 1);
  });

  test("[X27] a server that disconnects and a caller that stops in the middle of a body do not harm the agent", async () => {
    await expect(port("/breaks?secret").then((broken) => broken.text())).rejects.toThrow();
    const caller = new AbortController();
    const before = server.aborted();
    const body = new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from("part")) });
    const init = { method: "POST", body, duplex: "half", signal: caller.signal } as RequestInit;
    const answer = await port("/echo", init);
    expect(answer.status).toBe(200);
    caller.abort();
    await until("the server noticed", () => server.aborted() > before);
    expect((await port("/empty")).status).toBe(204);
    expect(agent.log).not.toContain("secret");
  });

  test("[X28] a port without a server is 502 with a hint, for WebSockets too", async () => {
    const stopped = await startServer();
    await stopped.close();
    const answer = await agent.request(`/v1/ports/${stopped.port}/`);
    expect(answer.status).toBe(502);
    expect(await answer.json()).toMatchObject({
      error: {
        code: "port_unreachable",
        port: stopped.port,
        hint: expect.stringContaining("listens on"),
      },
    });
    await once(open(`/v1/ports/${stopped.port}/`).socket, "error");
  });

  test("[X31] a server that gives no usable response is 502 with the reason, over WebSocket too", async () => {
    await using odd = await startOddServer();
    const headers = (count: number) => "x-a: 1\r\n".repeat(count);
    for (const [response, reason] of [
      ["", "closed"],
      ["HTTP/1.1 200 OK\r\nx-a: 1\r\n", "closed"],
      ["SSH-2.0-OpenSSH_9.9\r\n", "malformed_response"],
      [`HTTP/1.1 200 OK\r\n${headers(300)}\r\n`, "malformed_response"],
      ["HTTP/1.1 200 OK\r\nx-a: \x01\r\n\r\n", "malformed_response"],
      ["HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "malformed_response"],
      [`HTTP/1.1 200 OK\r\nx-a: ${"a".repeat(70_000)}\r\n\r\n`, "headers_too_large"],
    ]) {
      odd.respondWith(response ?? "");
      const answer = await agent.request(`/v1/ports/${odd.port}/`);
      const { error } = (await answer.json()) as { error: object };
      expect([answer.status, error], response?.slice(0, 40)).toEqual([
        502,
        expect.objectContaining({
          ...{ code: "port_unreachable", port: odd.port, reason },
          ...{ message: expect.stringContaining(`The server on port ${odd.port}`) },
          hint: expect.any(String),
        }),
      ]);
    }
    odd.respondWith("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    const headersOfSocket = { upgrade: "websocket", connection: "upgrade" };
    const refused = await upgrade(`/v1/ports/${odd.port}/`, headersOfSocket);
    expect(refused).toMatchObject({ code: "port_unreachable", reason: "no_websocket" });
  });

  test("[X31] bytes of header values that are not UTF-8 pass unchanged, both ways", async () => {
    await using odd = await startOddServer();
    odd.respondWith("HTTP/1.1 200 OK\r\nx-a: caf\xe9\r\ncontent-length: 0\r\n\r\n");
    const answer = await agent.request(`/v1/ports/${odd.port}/`, { headers: { "x-b": "th\xe9" } });
    expect(answer.headers.get("x-a")).toBe("caf\xe9");
    expect(odd.seen()).toContain("x-b: th\xe9\r\n");
  });

  test("[X28] the agent's own port and what is not a port are refused", async () => {
    for (const wrong of [String(agent.port), "0", "65536", "x", "080", ""]) {
      const answer = await agent.request(`/v1/ports/${wrong}/v1/health`);
      expect(answer.status, wrong).toBe(400);
      expect(await answer.json()).toMatchObject({ error: { code: "bad_request", field: "port" } });
    }
  });

  /** The error of a refused upgrade: `fetch` cannot send one. */
  const upgrade = (path: string, sent: Record<string, string>) =>
    new Promise<object>((resolve, reject) => {
      const socketKey = { "sec-websocket-key": "x".repeat(22), "sec-websocket-version": "13" };
      const headers = { authorization: `Bearer ${agent.secret}`, ...socketKey, ...sent };
      httpRequest(`${agent.url}${path}`, { headers }, async (response) => {
        let text = "";
        for await (const chunk of response) text += String(chunk);
        resolve(JSON.parse(text).error);
      })
        .on("error", reject)
        .end();
    });

  const open = (path: string, protocols: string[] = []) => {
    const socket = new WebSocket(`${agent.url.replace("http", "ws")}${path}`, protocols, {
      headers: { authorization: `Bearer ${agent.secret}` },
    });
    const messages: (string | Buffer)[] = [];
    socket.on("message", (data, isBinary) =>
      messages.push(isBinary ? (data as Buffer) : String(data)),
    );
    return { socket, messages };
  };
  const greeted = async (protocols?: string[]) => {
    const opened = open(`/v1/ports/${server.port}/chat?x=1`, protocols);
    await until("the server greeted", () => opened.messages.length === 1);
    return opened;
  };
  const closeOf = async (socket: WebSocket) => {
    const [code, reason] = await once(socket, "close");
    return { code, reason: String(reason) };
  };

  test("[X29] WebSocket text and binary pass both ways, from the server's first message on", async () => {
    const { socket, messages } = await greeted(["chat.v2", "chat.v1"]);
    expect(socket.protocol).toBe("chat.v2");
    expect(server.seen().headers).not.toHaveProperty("authorization");
    const binary = randomBytes(100_000);
    for (const message of ["text ü", binary, ""]) socket.send(message);
    await until("all came back", () => messages.length === 4);
    expect(messages).toEqual(["hello /chat?x=1", "text ü", binary, ""]);
    socket.close(4000, "enough");
    expect(await closeOf(socket)).toEqual({ code: 4000, reason: "enough" });
  });

  test("[X29] the server's close code and reason reach the caller; a lost server has a code of its own", async () => {
    const closed = await greeted();
    closed.socket.send("close me");
    expect(await closeOf(closed.socket)).toEqual({ code: 4321, reason: "as you wish" });
    const dropped = await greeted();
    dropped.socket.send("drop me");
    expect((await closeOf(dropped.socket)).code).toBe(1011);
  });

  test("[X29] no descriptor of a closed WebSocket stays", async () => {
    const before = agent.descriptors();
    const opened = await Promise.all(Array.from({ length: 20 }, () => greeted()));
    expect(agent.descriptors()).toBeGreaterThanOrEqual(before + 30);
    for (const { socket } of opened) socket.close();
    await until("all are closed", () => agent.descriptors() <= before);
  });
});
