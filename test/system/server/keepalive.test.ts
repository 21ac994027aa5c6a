/**
 * Viewers whose machine is gone, and those that only have nothing to say: at the agent, and on the way through the Worker
 * to clients as people have them. All at once, for it takes a minute.
 */
import { randomBytes } from "node:crypto";
import { connect as connectSocket, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket as WsSocket } from "ws";
import { connect } from "../../../src/client/index.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Agent } from "../../agent/agent.ts";
import {
  type SandboxServer,
  startServer as startSandboxServer,
} from "../../agent/sandbox-server.ts";
import { Viewer } from "../../agent/terminals/terminal-socket.ts";
import { endTerminal, openTerminal, script, terminalNow } from "../../agent/terminals/terminals.ts";
import { until } from "../../until.ts";
import { echoOf, open, openSocket, serve } from "../api/ports-server.ts";
import { startFileServer } from "../file-server.ts";
import { openViewer } from "../runs/runs.ts";

const { socketTimeoutMs: socketSilenceMs, socketPingMs } = limits;
/** Far beyond; only a hang gets there. */
const closedWithinMs = 3 * socketSilenceMs;

const server = await startFileServer();
const id = await server.create();
const argv = ["sh", "-c", "stty -echo; read line; while :; do echo tick; sleep 1; done"];
await server.call("POST", `/v1/sandboxes/${id}/terminals`, { id: "one", argv });
await serve(server, id);

describe.concurrent("keepalive of WebSockets, through the Worker", () => {
  it("[T19] a viewer that vanished is closed even while the terminal prints; libraries answer pings, and no client sees one as a message", async () => {
    const path = `/v1/sandboxes/${id}/terminals/one/connect`;
    const headers = { authorization: `Bearer ${server.key}` };
    const library = new WsSocket(`${server.url.replace("http", "ws")}${path}?mode=viewer`, {
      headers,
    });
    const messages: string[] = [];
    let pings = 0;
    library.on("message", (data) => messages.push(String(data)));
    library.on("ping", () => pings++);
    await until("the library's is open", () => library.readyState === WsSocket.OPEN);

    // The platform's own WebSocket, of Node here.
    const sdk = connect(server);
    const live = await sdk.sandbox(id).terminal("one").attach();
    const events: string[] = [];
    const reading = (async () => {
      for await (const event of live) events.push(event.type);
    })();

    const { pathUrl } = await open(server, id);
    const portSocket = new WsSocket(pathUrl.replace("http", "ws"));
    const echoes: string[] = [];
    portSocket.on("message", (data) => echoes.push(String(data)));
    await until(
      "the connection to the port is open",
      () => portSocket.readyState === WsSocket.OPEN,
    );
    const mutePort = await openSocket(pathUrl, {}, { mute: true });
    expect(await echoOf(mutePort.socket, "once")).toBe("once");
    let isMuteGone = false;
    mutePort.socket.on("close", () => {
      isMuteGone = true;
    });
    const mute = await openViewer(server, `${id}/terminals/one`, { mute: true });
    live.write(new TextEncoder().encode("go\n"));

    await Promise.all([
      until("the mute viewer is closed", () => mute.closed !== undefined, closedWithinMs),
      until("the mute connection to the port is closed", () => isMuteGone, closedWithinMs),
      until("pings came", () => pings >= Math.ceil(socketSilenceMs / socketPingMs), closedWithinMs),
    ]);
    const terminal = await server.call("GET", `/v1/sandboxes/${id}/terminals/one`);
    expect(terminal.body).toMatchObject({ viewers: 2 });
    expect(library.readyState).toBe(WsSocket.OPEN);
    expect(messages.join("").replaceAll("tick\r\n", "")).toBe("");
    expect(events).not.toContain("connection");
    expect(portSocket.readyState).toBe(WsSocket.OPEN);
    portSocket.send("still here");
    await until("the server answers", () => echoes.length > 0);
    expect(echoes).toEqual(["still here"]);
    for (const socket of [library, portSocket]) socket.close();
    live.close();
    await reading;
  }, 300_000);
});

describe.concurrent("keepalive of WebSockets, at the agent", () => {
  let agent: Agent;
  let server: SandboxServer;
  beforeAll(async () => {
    agent = await Agent.start();
    server = await startSandboxServer();
    await openTerminal(agent, { id: "quiet", argv: script("stty -echo; read -r line") });
    const ticks = "n=0; while :; do echo tick $((n += 1)); sleep 1; done";
    await openTerminal(agent, { id: "prints", argv: script(ticks) });
  });
  afterAll(async () => {
    for (const id of ["quiet", "prints"]) await endTerminal(agent, id);
    await server.close();
    await agent.stop();
  });

  const viewers = async (id: string) => (await terminalNow(agent, id)).viewers;
  const idleMs = async () => {
    const work = (await (await agent.request("/v1/work")).json()) as { idleMs: number };
    return work.idleMs;
  };
  const closedForSilence = async (viewer: Viewer) => {
    await until("the mute viewer is closed", () => viewer.closed !== undefined, closedWithinMs);
    // It was pinged as often as fits into its time, and got no close frame.
    expect(viewer.closed?.code).toBe(1006);
    expect(viewer.pings).toBeGreaterThanOrEqual(Math.floor(socketSilenceMs / socketPingMs) - 1);
  };

  it("[T19] a client that sends nothing for a minute is closed, even while it is sent output; one that answers pings stays", async () => {
    const mute = {
      quiet: await Viewer.open(agent, "quiet", { mute: true }),
      prints: await Viewer.open(agent, "prints", { mute: true, silent: true }),
      plain: await Viewer.open(agent, "prints", { mute: true, framed: false }),
    };
    const alive = {
      quiet: await Viewer.open(agent, "quiet", { silent: true }),
      prints: await Viewer.open(agent, "prints", { silent: true, framed: false }),
    };
    const portSocket = await openPortSocket(agent, server.port);
    expect([await viewers("quiet"), await viewers("prints")]).toEqual([2, 3]);
    await Promise.all([
      ...Object.values(mute).map(closedForSilence),
      until(
        "the mute connection to the port is closed",
        () => portSocket.isClosed(),
        closedWithinMs,
      ),
    ]);
    expect([await viewers("quiet"), await viewers("prints")]).toEqual([1, 1]);
    expect([alive.quiet.closed, alive.prints.closed]).toEqual([undefined, undefined]);
    expect(alive.quiet.pings).toBeGreaterThan(1);
    expect(alive.quiet.frames.map(({ type }) => type)).toEqual(["ready"]);
    expect(alive.quiet.shown).toBe("");

    const back = await Viewer.open(agent, "prints", { after: mute.prints.offset });
    await back.frame("ready");
    expect(back.frames[0]).toMatchObject({ type: "ready", offset: mute.prints.offset });
    expect(await idleMs()).toBe(0);
    await Promise.all([back, ...Object.values(alive)].map((viewer) => viewer.close()));
    await until("nothing keeps it busy", async () => (await idleMs()) > 0);
  }, 300_000);

  /** To a server in the sandbox; after the handshake it hears and says nothing. */
  async function openPortSocket({ port, secret }: Agent, to: number) {
    const socket: Socket = connectSocket(port, "127.0.0.1");
    const lines = [
      `GET /v1/ports/${to}/chat HTTP/1.1`,
      ...["Host: agent", "Upgrade: websocket", "Connection: Upgrade"],
      `Authorization: Bearer ${secret}`,
      `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`,
      ...["Sec-WebSocket-Version: 13", "", ""],
    ];
    let head = "";
    let closed = false;
    socket.on("data", (bytes) => {
      head += bytes.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      closed = true;
    });
    socket.write(lines.join("\r\n"));
    await until("the connection to the port is open", () => head.includes("\r\n\r\n"));
    expect(head).toMatch(/^HTTP\/1\.1 101 /);
    return { isClosed: () => closed };
  }
});
