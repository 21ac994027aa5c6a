/** The pings of an agent on their way through the Worker, to clients as people have them and to one that is gone. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket as WsSocket } from "ws";
import { connect } from "../../src/client/index.ts";
import { limits } from "../../src/protocol/limits.ts";
import { echoOf, open, serve, upgrade } from "./ports-server.ts";
import { alive, naming } from "./processes.ts";
import { type Server, startServer } from "./server.ts";
import { until } from "./until.ts";
import { Viewer } from "./viewer.ts";

const { socketSilenceMs, socketPingMs } = limits;
const letGoWithinMs = 3 * socketSilenceMs;

describe("the pulse of WebSockets, through the Worker", () => {
  let server: Server;
  let id: string;
  beforeAll(async () => {
    server = await startServer();
    id = await server.create();
    const argv = ["sh", "-c", "stty -echo; read line; while :; do echo tick; sleep 1; done"];
    await server.call("POST", `/v1/sandboxes/${id}/terminals`, { id: "one", argv });
    await serve(server, id);
  });
  afterAll(async () => {
    const tree = server.processes();
    await server[Symbol.asyncDispose]();
    expect(alive(tree)).toEqual([]);
    expect(naming(server.data)).toEqual([]);
  });

  it("[T19] a viewer that is gone is let go though the terminal prints; libraries answer pings, and nobody sees one as a message", async () => {
    const path = `/v1/sandboxes/${id}/terminals/one/connect`;
    const headers = { authorization: `Bearer ${server.key}` };
    const library = new WsSocket(`${server.url.replace("http", "ws")}${path}?mode=viewer`, {
      headers,
    });
    const heard: string[] = [];
    let pings = 0;
    library.on("message", (data) => heard.push(String(data)));
    library.on("ping", () => pings++);
    await until("the library's is open", () => library.readyState === WsSocket.OPEN);

    // The platform's own WebSocket, of Node here.
    const sdk = connect({ url: server.url, key: server.key });
    const live = await sdk.sandbox(id).attachTerminal("one");
    const events: string[] = [];
    const told = (async () => {
      for await (const event of live) events.push(event.type);
    })();

    const { pathUrl } = await open(server, id);
    const visitor = new WsSocket(pathUrl.replace("http", "ws"));
    const echoes: string[] = [];
    visitor.on("message", (data) => echoes.push(String(data)));
    await until("the visitor is there", () => visitor.readyState === WsSocket.OPEN);
    const mutePort = await upgrade(pathUrl);
    expect(await echoOf(mutePort.socket, "once")).toBe("once");
    let isMuteGone = false;
    mutePort.socket.on("close", () => {
      isMuteGone = true;
    });
    const mute = await Viewer.open(server, `${id}/terminals/one`, { mute: true });
    live.write(new TextEncoder().encode("go\n"));

    await Promise.all([
      until("the mute viewer is let go", () => mute.isCut, letGoWithinMs),
      until("the mute visitor is let go", () => isMuteGone, letGoWithinMs),
      until("pings came", () => pings >= Math.ceil(socketSilenceMs / socketPingMs), letGoWithinMs),
    ]);
    const terminal = await server.call("GET", `/v1/sandboxes/${id}/terminals/one`);
    expect(terminal.body).toMatchObject({ viewers: 2 });
    expect(library.readyState).toBe(WsSocket.OPEN);
    expect(heard.join("").replaceAll("tick\r\n", "")).toBe("");
    expect(events).not.toContain("connection");
    expect(visitor.readyState).toBe(WsSocket.OPEN);
    visitor.send("still here");
    await until("the server answers", () => echoes.length > 0);
    expect(echoes).toEqual(["still here"]);
    for (const socket of [library, visitor]) socket.close();
    live.close();
    await told;
  }, 300_000);
});
