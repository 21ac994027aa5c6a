/** An agent that somebody has taken over: whatever it answers, a call ends in order, and nothing of it goes elsewhere. */
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createRaw } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { asBerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { AgentSilent, callAgent } from "../../../src/runtime/agent-client.ts";
import { engineContainer } from "../../../src/runtime/engine.ts";
import { shortText } from "../../../src/runtime/short-response.ts";
import { FakeBerth } from "../../fakes/berth.ts";

/** Given back to whoever reads them. */
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
  // Over the network any number comes; a Response that is made takes few.
  return Object.defineProperty(new Response(body), "status", { value: status });
}

const lengthOf = (text: string) => ({ "content-length": `${text.length}` });
const text = (body: string, status = 200) =>
  new Response(body, { status, headers: lengthOf(body) });

const answers: Record<string, () => Response> = {
  "a redirect": () =>
    new Response(null, { status: 307, headers: { location: "http://127.0.0.1:1/steal" } }),
  "an endless body": () => new Response(endless()),
  "an endless body that seems to be short": () =>
    new Response(endless(), {
      headers: { "content-length": "9", "transfer-encoding": "chunked" },
    }),
  "no JSON": () => text("<html>"),
  "JSON of another form": () => text("[1]"),
  "no body": () => new Response(null),
  "a refusal that is none": () => text('{"error":"no"}', 500),
  "an upgrade that nobody asked for": () => withStatus(101),
  "a status that there is not": () => withStatus(999, "{}"),
  "a status without a body": () => withStatus(204),
};

/** What reads an answer as it comes is ended by its caller. */
const calls: Record<string, (box: SandboxApi) => Promise<unknown>> = {
  exec: (box) => box.exec({ command: "true" }),
  "exec with a key": (box) => box.exec({ command: "true" }, { idempotencyKey: "k".repeat(20) }),
  "a process": (box) => box.startProcess({ command: "true" }),
  "a list": (box) => box.processes(),
  "a session": (box) => box.createSession({}),
  "an upload": (box) => box.writeFile("a.txt", new TextEncoder().encode("one")),
  "a look at a file": (box) => box.stat("a.txt"),
  "a folder": (box) => box.mkdir({ path: "a" }),
  "a pause": (box) => box.pause(),
  "a lease": (box) => box.acquireLease({ holder: "me" }),
  metadata: (box) => box.patchMetadata({ a: "1" }),
  "a look": (box) => box.get(),
};

const passes = new Set(["an endless body"]);
const streams = new Set([
  "exec",
  "exec with a key",
  "a process",
  "a list",
  "a session",
  "a look at a file",
  "a folder",
]);

describe.each(Object.keys(answers))("an agent that answers %s", (kind) => {
  it.each(Object.keys(calls))("[S33] ends %s in order", async (call) => {
    // What has no length passes through to who asked, at his pace: he stops when he has enough.
    if (passes.has(kind) && streams.has(call)) return;
    const berth = new FakeBerth();
    const local = berth.bind({ tenant: "local" });
    const { id } = await local.create({ waitMs: 10_000 });
    const machine = berth.machine(id);
    const { incarnation = "" } = machine.agent ?? {};
    pieces = 0;
    machine.answers = () => {
      // Whoever asks why it ended is told at once.
      const { startId = "" } = machine.agent ?? {};
      machine.exits.set(startId, { exitCode: null, signal: null, reason: "unknown" });
      const response = answers[kind]?.() ?? Response.error();
      response.headers.set("berth-incarnation", incarnation);
      response.headers.set("berth-protocol", "1");
      return response;
    };
    await berth.evict(id);
    machine.asked.length = 0;
    const began = performance.now();
    const failed = await calls[call]?.(local.sandbox(id)).then(
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
    expect(performance.now() - began).toBeLessThan(limits.agentHeadersMs);
    expect(pieces * pieceBytes).toBeLessThan(100 * limits.agentJsonBytesMax);
    if (call === "exec" || call === "an upload") expect(failed).toBeDefined();
    expect(machine.asked.length).toBeGreaterThan(0);
    machine.answers = undefined;
    await local.sandbox(id).breakLease("over");
    expect((await local.sandbox(id).start()).state).toBe("running");
    expect((await local.sandbox(id).exec({ command: "echo on" })).stdout).toBe("on\n");
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

  const ask = (address: string, body?: string) => {
    const container = engineContainer({ id: "a", baseUrl: "http://127.0.0.1:1", secret: "s" });
    const timer = (ms: number, ring: () => void) => {
      const timeout = setTimeout(ring, ms);
      return () => clearTimeout(timeout);
    };
    const reach = { container, timer, awake: async () => undefined };
    const life = { incarnation: "a.b", secret: "the secret", address };
    const call = { method: "POST", path: "/v1/exec", body, requestId: "r" } as const;
    return callAgent(reach, life, call);
  };

  it.each([301, 302, 303, 307, 308])("[S33] a redirect by %i is not followed", async (status) => {
    const met: string[] = [];
    const elsewhere = await listen((response, url) => {
      met.push(url);
      response.end("{}");
    });
    const agent = await listen((response) => {
      response.writeHead(status, { location: `${elsewhere}/steal` }).end();
    });
    await expect(ask(agent, "{}")).rejects.toBeInstanceOf(AgentSilent);
    expect(met).toEqual([]);
    expect((await ask(elsewhere, "{}")).status).toBe(200);
    expect(met).toEqual(["/v1/exec"]);
  });

  it("[S33] an upgrade that nobody asked for is no answer, and another life is none", async () => {
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
    await expect(ask(`http://127.0.0.1:${port}`)).rejects.toBeInstanceOf(AgentSilent);
    const other = await listen((response) => {
      response.writeHead(200, { "berth-incarnation": "a.c" }).end("{}");
    });
    await expect(ask(other)).rejects.toBeInstanceOf(AgentSilent);
  });

  it("[S33] a body without an end is read to its bound", async () => {
    let sent = 0;
    const agent = await listen((response) => {
      const more = () => {
        for (let goesOn = sent < 1e9; goesOn; sent += pieceBytes) {
          goesOn = response.write(Buffer.alloc(pieceBytes, "x")) && sent < 1e9;
        }
      };
      response.on("drain", more);
      more();
    });
    expect(await shortText(await ask(agent), 1e6)).toBeUndefined();
    expect(sent).toBeGreaterThan(1e6);
    expect(sent).toBeLessThan(1e8);
    const given = new AbortController();
    const silent = await listen((response) => void response.write("x"));
    setTimeout(() => given.abort(), 50);
    expect(await shortText(await ask(silent), 1e6, given.signal)).toBeUndefined();
  });
});
