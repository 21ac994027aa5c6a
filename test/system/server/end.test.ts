import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../until.ts";
import { expectNothingLeft, killServer } from "../file-server.ts";
import { alive, type ProcessInfo } from "../processes.ts";
import { type Server, startServer } from "../server.ts";

/** A server that has a sandbox in which a command runs, and all of its processes. */
async function busyServer(): Promise<{ server: Server; tree: ProcessInfo[]; id: string }> {
  const server = await startServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const id = await server.create();
  void server.exec(id, "setsid sleep 4242 & sleep 4243").catch(() => undefined);
  const commands = () => server.processes().map(({ command }) => command);
  await until("both commands run", () =>
    ["sleep 4242", "sleep 4243"].every((sleep) => commands().includes(sleep)),
  );
  const tree = server.processes();
  for (const part of ["start.js", "workerd serve", "container/engine/main.ts", "berth-agent"]) {
    expect(commands().some((command) => command.includes(part))).toBe(true);
  }
  return { server, tree, id };
}

async function nothingIsLeft(server: Server, tree: ProcessInfo[]): Promise<void> {
  await expectNothingLeft(server, tree);
  await expect(fetch(`${server.url}/health`)).rejects.toThrow();
}

/** The next server with the same data has the sandbox, and leaves nothing behind either. */
async function expectNextServes(server: Server, tree: ProcessInfo[], id: string): Promise<void> {
  const next = await startServer({ data: server.data });
  expect(alive(tree)).toEqual([]);
  expect((await next.exec(id, "echo back")).body).toMatchObject({ stdout: "back\n" });
  const after = next.processes();
  await next.stop();
  await nothingIsLeft(next, after);
}

describe("the end of npm start", () => {
  it("[O7] Ctrl-C at the terminal ends every process and exits with 0", async () => {
    const { server, tree } = await busyServer();
    // What a terminal does: the signal goes to the whole group, npm and the launcher alike.
    process.kill(-(server.launched.child.pid ?? 0), "SIGINT");
    expect(await server.ended()).toMatchObject({ code: 0 });
    await nothingIsLeft(server, tree);
  });

  it.each(["SIGINT", "SIGTERM"] as const)(
    "[O7] %s to npm ends every process and exits with 0",
    async (signal) => {
      const { server, tree } = await busyServer();
      server.signal(signal);
      expect(await server.ended()).toMatchObject({ code: 0 });
      await nothingIsLeft(server, tree);
    },
  );

  it.each(["SIGHUP", "SIGKILL"] as const)(
    "[O7] %s to npm alone, which passes neither on, ends every process",
    async (signal) => {
      const { server, tree } = await busyServer();
      server.signal(signal);
      await server.ended();
      await nothingIsLeft(server, tree);
    },
  );

  it("[O7] SIGTERM to the launcher alone ends every process and exits with 0", async () => {
    const { server, tree } = await busyServer();
    process.kill(server.launcher.pid, "SIGTERM");
    const { code, stderr } = await server.ended();
    expect(code).toBe(0);
    // What ends because it was asked to is no news.
    expect(stderr).not.toMatch(/^berth: .* ended/m);
    await nothingIsLeft(server, tree);
  });

  it("[O8] kill -9 of the launcher leaves no process, and the next start serves the same sandbox", async () => {
    const { server, tree, id } = await busyServer();
    process.kill(server.launcher.pid, "SIGKILL");
    await server.ended();
    await nothingIsLeft(server, tree);
    await expectNextServes(server, tree, id);
  });

  it("[O8] kill -9 of launcher, workerd and engine at once leaves nothing after the next start", async () => {
    const { server, tree, id } = await busyServer();
    killServer(server);
    await server.ended();
    await expectNextServes(server, tree, id);
  });
});
