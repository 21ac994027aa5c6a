/** Viewers whose machine is gone, and those that only have nothing to say: all at once, for it takes a minute. */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { Agent } from "./agent.ts";
import { type SandboxServer, startServer } from "./sandbox-server.ts";
import { Viewer } from "./terminal-socket.ts";
import { endTerminal, openTerminal, script, terminalNow } from "./terminals.ts";
import { until } from "./until.ts";

const { socketSilenceMs, socketPingMs } = limits;
/** Far beyond; only a hang gets there. */
const letGoWithinMs = 3 * socketSilenceMs;

describe("the pulse of WebSockets", () => {
  let agent: Agent;
  let server: SandboxServer;
  beforeAll(async () => {
    agent = await Agent.start();
    server = await startServer();
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
  const letGo = async (viewer: Viewer) => {
    const began = performance.now();
    await until("the mute viewer is let go", () => viewer.closed !== undefined, letGoWithinMs);
    // It had its time, and was told nothing: nobody is there.
    expect(performance.now() - began).toBeGreaterThan(socketSilenceMs / 2);
    expect(viewer.closed?.code).toBeUndefined();
    expect(viewer.pings).toBeGreaterThanOrEqual(Math.floor(socketSilenceMs / socketPingMs) - 1);
  };

  test("[T19] who answers nothing for a minute is let go, whatever is sent to him; who answers pings stays", async () => {
    const mute = {
      quiet: await Viewer.open(agent, "quiet", { mute: true }),
      prints: await Viewer.open(agent, "prints", { mute: true, silent: true }),
      plain: await Viewer.open(agent, "prints", { mute: true, framed: false }),
    };
    const alive = {
      quiet: await Viewer.open(agent, "quiet", { silent: true }),
      prints: await Viewer.open(agent, "prints", { silent: true, framed: false }),
    };
    const visitor = await visiting(agent, server.port);
    expect([await viewers("quiet"), await viewers("prints")]).toEqual([2, 3]);
    await Promise.all([
      ...Object.values(mute).map(letGo),
      until("the mute visitor is let go", () => visitor.isClosed(), letGoWithinMs),
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
  async function visiting({ port, secret }: Agent, to: number) {
    const socket: Socket = connect(port, "127.0.0.1");
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
    await until("the visitor is there", () => head.includes("\r\n\r\n"));
    expect(head).toMatch(/^HTTP\/1\.1 101 /);
    return { isClosed: () => closed };
  }
});
