import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { raisedLimit } from "../../../container/launch/descriptors.js";
import { until } from "../../until.ts";
import { startServer } from "../server.ts";

const startedWith = 1_000;
/** Each costs workerd more than one descriptor. */
const connections = 1_500;
const mayRaise = spawnSync("sh", ["-c", "ulimit -Hn $(($(ulimit -Hn) + 1))"]).status === 0;
if (!mayRaise) console.warn("SKIPPED: this user may not raise the limit on open files");

it("[O24] root raises the limit on open files to what the kernel accepts; nobody lowers it", () => {
  const found = { hard: 20_000, isRoot: true, kernelMax: 1_048_576 };
  expect(raisedLimit(found)).toBe(1_048_576);
  expect(raisedLimit({ ...found, kernelMax: 65_536 })).toBe(65_536);
  expect(raisedLimit({ ...found, kernelMax: 1_073_741_816 })).toBe(1_048_576);
  expect(raisedLimit({ ...found, kernelMax: 0 })).toBe(20_000);
  expect(raisedLimit({ ...found, hard: 2_000_000 })).toBe(2_000_000);
  expect(raisedLimit({ ...found, isRoot: false })).toBe(20_000);
});

it.skipIf(!mayRaise)(
  "[O24] a server of root holds more connections than the limit on open files that it was started with",
  async () => {
    await using server = await startServer({
      through: ["prlimit", `--nofile=${startedWith}:${startedWith}`],
    });
    const id = await server.create();
    const { hostname, port } = new URL(server.url);
    const sockets: Socket[] = [];
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    let closed = 0;
    for (let n = 0; n < connections; n += 1) {
      const socket = connect(Number(port), hostname);
      sockets.push(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        closed += 1;
      });
    }
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    // A request on the newest one, so that the server has accepted those before it.
    const last = sockets.at(-1);
    let response = "";
    last?.on("data", (chunk) => {
      response += chunk;
    });
    last?.write("GET /health HTTP/1.1\r\nhost: berth\r\n\r\n");
    await until("the last connection is served", () => closed > 0 || response !== "");
    expect(response).toMatch(/^HTTP\/1\.1 200 /);
    expect((await server.exec(id, "echo served")).body).toMatchObject({ stdout: "served\n" });
    expect(closed).toBe(0);
    expect(server.launched.output.stderr).not.toContain("ended");
  },
);
