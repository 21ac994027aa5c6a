/** Restarts of a server, in order and by kill: they count against no sandbox, and lists show what is true. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { until } from "../../until.ts";
import { startServer } from "../server.ts";

/** One more than a sandbox may be restarted in ten minutes after losses of its own. */
const restarts = ["stop", "kill", "kill", "kill"] as const;

test("[S38] after four restarts a sandbox is paused in lists without having been asked, and its next call runs", async () => {
  const data = mkdtempSync(join(tmpdir(), "berth-restarts-"));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  let id: string | undefined;
  for (const [n, end] of [...restarts, undefined].entries()) {
    const server = await startServer({ data });
    const berth = connect(server);
    if (id === undefined) id = await server.create({ onIdle: "none" });
    else {
      await until("the list has noticed", async () => {
        const { sandboxes } = (await server.call("GET", "/v1/sandboxes")).body;
        const [listed] = sandboxes as { id: string; state: string; reason?: string }[];
        return listed?.id === id && `${listed?.state} ${listed?.reason}` === "paused server_ended";
      });
      expect(await berth.counts()).toMatchObject({ states: { paused: 1 } });
    }
    const { stdout } = await berth.sandbox(id).exec({ command: `echo ${n} >> all; cat all` });
    expect(stdout).toBe(Array.from({ length: n + 1 }, (_, line) => `${line}\n`).join(""));
    if (end === "kill") {
      const parts = server.processes().map(({ pid }) => pid);
      for (const pid of parts) process.kill(pid, "SIGKILL");
      await server.ended;
    } else await server[Symbol.asyncDispose]();
  }
}, 180_000);

test("[S38] an engine that dies without the server pauses its sandboxes", async () => {
  await using server = await startServer();
  const id = await server.create({ onIdle: "none" });
  const sandbox = connect(server).sandbox(id);
  for (let n = 0; n < 4; n += 1) {
    const { incarnation } = await sandbox.get();
    process.kill(server.engine.pid, "SIGKILL");
    await until("the next call runs", async () => {
      const ran = await sandbox.exec({ command: "true" }).catch(() => undefined);
      return ran !== undefined && ran.incarnation !== incarnation;
    });
  }
  const { body } = await server.call("GET", `/v1/sandboxes/${id}/events`);
  const events = body.events as { event: { type: string; reason?: string } }[];
  const reasons = events.flatMap(({ event }) =>
    event.type === "state" && event.reason !== undefined ? [event.reason] : [],
  );
  expect(new Set(reasons)).toEqual(new Set(["server_ended"]));
}, 180_000);
