/** A compromised agent: whatever it sends, each call ends with a known error, and nothing goes elsewhere. */
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createRaw } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { asBerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { AgentUnreachable, callAgent } from "../../../src/runtime/agent-client.ts";
import { readBoundedText } from "../../../src/runtime/bodies.ts";
import { engineRuntime } from "../../../src/runtime/engine.ts";
import { startSandbox } from "./harness.ts";

/** Chunks of endless bodies that were read. */
let pieces = 0;
const pieceBytes = 65_536;

function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull(to) {
      pieces++;
      to.enqueue(new Uint8Array(pieceBytes).fill(0x20));
    },
  });
}

function withStatus(status: number, body: string | null = null): Response {
  // The network may deliver any status; the constructor of Response accepts few.
  return Object.defineProperty(new Response(body), "status", { value: status });
}

const lengthOf = (text: string) => ({ "content-length": `${text.length}` });
const text = (body: string, status = 200) =>
  new Response(body, { status, headers: lengthOf(body) });

const answers: Record<string, () => Response> = {
  "a redirect": () =>
    new Response(null, { status: 307, headers: { location: "http://127.0.0.1:1/steal" } }),
  "an endless body": () => new Response(endless()),
  "an endless body with a short content-length": () =>
    new Response(endless(), { headers: { "content-length": "9", "transfer-encoding": "chunked" } }),
  "no JSON": () => text("<html>"),
  "JSON of another form": () => text("[1]"),
  "no body": () => new Response(null),
  "an invalid error": () => text('{"error":"no"}', 500),
  "an unrequested upgrade": () => withStatus(101),
  "an unknown status": () => withStatus(999, "{}"),
  "a status without a body": () => withStatus(204),
};

/** Calls that end by themselves; a stream ends with its caller. */
const calls: Record<string, (sandbox: SandboxApi) => Promise<unknown>> = {
  exec: (sandbox) => sandbox.exec({ command: "true" }),
  "exec with a key": (sandbox) =>
    sandbox.exec({ command: "true" }, { idempotencyKey: "k".repeat(20) }),
  "a process": (sandbox) => sandbox.startProcess({ command: "true" }),
  "a list": (sandbox) => sandbox.processes(),
  "a session": (sandbox) => sandbox.createSession({}),
  "an upload": (sandbox) => sandbox.writeFile("a.txt", new TextEncoder().encode("one")),
  "stat of a file": (sandbox) => sandbox.stat("a.txt"),
  "a folder": (sandbox) => sandbox.mkdir({ path: "a" }),
  "a pause": (sandbox) => sandbox.pause(),
  "a lease": (sandbox) => sandbox.acquireLease({ holder: "me" }),
  metadata: (sandbox) => sandbox.patchMetadata({ a: "1" }),
  "a get": (sandbox) => sandbox.get(),
};

const passes = new Set(["an endless body"]);
const streams = new Set([
  "exec",
  "exec with a key",
  "a process",
  "a list",
  "a session",
  "stat of a file",
  "a folder",
]);

afterEach(() => void vi.useRealTimers());

describe.each(Object.keys(answers))("an agent that answers %s", (kind) => {
  it.each(Object.keys(calls))("[S33] ends %s in order", async (call) => {
    // A response without a length is streamed to the caller, who stops when it has enough.
    if (passes.has(kind) && streams.has(call)) return;
    const { berth, id, sandbox, container } = await startSandbox();
    const { incarnation = "" } = container.agent ?? {};
    pieces = 0;
    container.respond = () => {
      // The loss reason is known at once.
      const { startId = "" } = container.agent ?? {};
      container.exits.set(startId, { exitCode: null, signal: null, reason: "unknown" });
      const response = answers[kind]?.() ?? Response.error();
      response.headers.set("berth-incarnation", incarnation);
      response.headers.set("berth-protocol", "1");
      return response;
    };
    await berth.evict(id);
    container.requests.length = 0;
    // Time stands still: a call that waits for one of its limits never ends.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
    const failed = await calls[call]?.(sandbox).then(
      () => undefined,
      (error: unknown) => asBerthError(error)?.code ?? String(error),
    );
    expect([
      undefined,
      "operation_interrupted",
      "start_failed",
      "unavailable",
      "not_running",
    ]).toContain(failed);
    expect(pieces * pieceBytes).toBeLessThan(100 * limits.agentJsonBytesMax);
    if (call === "exec" || call === "an upload") expect(failed).toBeDefined();
    expect(container.requests.length).toBeGreaterThan(0);
    container.respond = undefined;
    await sandbox.breakLease("over");
    expect((await sandbox.start()).state).toBe("running");
    expect((await sandbox.exec({ command: "echo on" })).stdout).toBe("on\n");
  });
});

describe("over the network", () => {
  const servers: { close: () => unknown }[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) server.close();
  });

  async function listen(answer: (response: ServerResponse, url: string) => void): Promise<string> {
    const server: Server = createServer((request, response) => {
      response.setHeader("berth-incarnation", "a.b");
      answer(response, request.url ?? "");
    });
    servers.push({
      close: () => {
        server.closeAllConnections();
        server.close();
      },
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const request = (address: string, body?: string) => {
    const runtime = engineRuntime({ id: "a", baseUrl: "http://127.0.0.1:1", secret: "s" });
    const startTimer = (ms: number, ring: () => void) => {
      const timeout = setTimeout(ring, ms);
      return () => clearTimeout(timeout);
    };
    const deps = { runtime, startTimer, waitUntilThawed: async () => undefined };
    const agent = { incarnation: "a.b", secret: "the secret", address };
    const call = { method: "POST", path: "/v1/exec", body, requestId: "r" } as const;
    return callAgent(deps, agent, call);
  };

  it.each([301, 302, 303, 307, 308])("[S33] a redirect by %i is not followed", async (status) => {
    const visited: string[] = [];
    const elsewhere = await listen((response, url) => {
      visited.push(url);
      response.end("{}");
    });
    const agent = await listen((response) => {
      response.writeHead(status, { location: `${elsewhere}/steal` }).end();
    });
    await expect(request(agent, "{}")).rejects.toBeInstanceOf(AgentUnreachable);
    expect(visited).toEqual([]);
    expect((await request(elsewhere, "{}")).status).toBe(200);
    expect(visited).toEqual(["/v1/exec"]);
  });

  it("[S33] an unrequested upgrade and another incarnation are refused", async () => {
    const raw = createRaw((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () =>
        socket.end(
          "HTTP/1.1 101 Switching Protocols\r\nberth-incarnation: a.b\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        ),
      );
    });
    servers.push(raw);
    await new Promise<void>((resolve) => raw.listen(0, "127.0.0.1", resolve));
    const { port } = raw.address() as AddressInfo;
    connect(port, "127.0.0.1")
      .on("error", () => undefined)
      .end("x");
    await expect(request(`http://127.0.0.1:${port}`)).rejects.toBeInstanceOf(AgentUnreachable);
    const other = await listen((response) => {
      response.writeHead(200, { "berth-incarnation": "a.c" }).end("{}");
    });
    await expect(request(other)).rejects.toBeInstanceOf(AgentUnreachable);
  });

  it("[S33] a body without an end is read to its bound", async () => {
    let sent = 0;
    const agent = await listen((response) => {
      const more = () => {
        for (let hasRoom = sent < 1e9; hasRoom; sent += pieceBytes) {
          hasRoom = response.write(Buffer.alloc(pieceBytes, "x")) && sent < 1e9;
        }
      };
      response.on("drain", more);
      more();
    });
    expect(await readBoundedText(await request(agent), 1e6)).toBeUndefined();
    expect(sent).toBeGreaterThan(1e6);
    expect(sent).toBeLessThan(1e8);
    const given = new AbortController();
    const silent = await listen((response) => void response.write("x"));
    const read = readBoundedText(await request(silent), 1e6, given.signal);
    given.abort();
    expect(await read).toBeUndefined();
  });
});
