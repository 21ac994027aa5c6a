import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { alive } from "../processes.ts";
import { type Server, startServer } from "../server.ts";

const diskBytes = 64 * 1024 * 1024;

/** Until nothing more can be written. */
function fill(file: string): void {
  const fd = openSync(file, "w");
  try {
    for (const piece of [Buffer.alloc(1024 * 1024), Buffer.alloc(512)]) {
      for (;;) {
        try {
          if (writeSync(fd, piece) < piece.length) break;
        } catch {
          break;
        }
      }
    }
  } finally {
    closeSync(fd);
  }
}

/** The outcome of a call while nothing can be written: it must say so, and never report an internal error. */
async function callDuringFull(server: Server, method: string, path: string, body?: unknown) {
  const answer = await server.call(method, path, body);
  if (answer.status < 400) return "done";
  const { code } = answer.body.error ?? {};
  expect(["operation_interrupted", "disk_full", "unavailable"], `${method} ${path}`).toContain(
    code,
  );
  return code;
}

// Only root may mount a small disk.
describe.skipIf(process.getuid?.() !== 0)("a disk without room", () => {
  it("[O21] ends neither the server nor the engine; calls get an error, and with free space everything continues", async () => {
    const disk = mkdtempSync(join(tmpdir(), "berth-full-"));
    const options = ["-t", "tmpfs", "-o", `size=${diskBytes},mode=755`, "none", disk];
    expect(spawnSync("mount", options).status).toBe(0);
    try {
      await using server = await startServer({ data: join(disk, "data") });
      const id = await server.create();
      const path = `/v1/sandboxes/${id}`;
      await server.exec(id, "echo kept > file");
      const engine = server.engine;
      const others = [server.launcher, server.workerd];
      const parts = [...others, engine];
      fill(join(disk, "fill"));
      const outcomes = [
        await callDuringFull(server, "PATCH", `${path}/metadata`, { a: "1" }),
        await callDuringFull(server, "POST", `${path}/processes`, { command: "true" }),
        await callDuringFull(server, "POST", `${path}/files/mkdir`, { path: "folder" }),
        await callDuringFull(server, "POST", `${path}/checkpoints`, {}),
        await callDuringFull(server, "POST", "/v1/sandboxes", { waitMs: 20_000 }),
        await callDuringFull(server, "PUT", "/v1/plans/full", {}),
      ];
      expect(outcomes.filter((outcome) => outcome !== "done").length).toBeGreaterThan(0);
      expect((await server.call("GET", path)).body.state).toBe("running");
      expect(alive(parts)).toEqual(parts);
      process.kill(engine.pid, "SIGKILL");
      await until("the engine is there again", async () => {
        if (alive([engine]).length > 0) return false;
        return (await server.call("GET", "/health")).body.status === "disk_full";
      });
      rmSync(join(disk, "fill"));
      await until("it works again", async () => {
        const { body } = await server.exec(id, "cat file");
        return body.stdout === "kept\n";
      });
      expect(alive(others)).toEqual(others);
      expect((await server.call("PATCH", `${path}/metadata`, { a: "2" })).status).toBe(200);
      await server.create();
      expect((await server.stop()).code).toBe(0);
    } finally {
      expect(spawnSync("umount", [disk]).status).toBe(0);
      rmdirSync(disk);
    }
  });

  it("[O26] a sandbox that fills the disk again and again keeps nobody from destroying it, and all works again after that", async () => {
    const disk = mkdtempSync(join(tmpdir(), "berth-full-"));
    const options = ["-t", "tmpfs", "-o", `size=${2 * diskBytes},mode=755`, "none", disk];
    expect(spawnSync("mount", options).status).toBe(0);
    try {
      await using server = await startServer({ data: join(disk, "data") });
      const peaceful = await server.create();
      const writer = await server.create();
      const path = `/v1/sandboxes/${peaceful}`;
      expect((await server.call("GET", "/health")).status).toBe(200);
      const command = "n=0; while :; do n=$((n+1)); dd if=/dev/zero of=fill$n bs=1M; done";
      await server.call("POST", `/v1/sandboxes/${writer}/processes`, { command });
      await until("health says that the disk is full", async () => {
        const { status, body } = await server.call("GET", "/health");
        if (status !== 503) return false;
        expect(body).toMatchObject({
          status: "disk_full",
          disk: { freeBytes: expect.any(Number) },
        });
        return true;
      });
      const full = [507, "disk_full"];
      const refusal = async (method: string, to: string, body?: unknown) => {
        const answer = await server.call(method, to, body);
        return [answer.status, answer.body.error?.code];
      };
      await until("what takes room is refused by name", async () => {
        const found = await refusal("POST", "/v1/sandboxes", { start: false });
        return found.join() === full.join();
      });
      expect(await refusal("POST", `${path}/checkpoints`, {})).toEqual(full);
      expect(await refusal("PUT", `${path}/files?path=a`, "text")).toEqual(full);
      await until("the writer is destroyed", async () => {
        const { status } = await server.call("DELETE", `/v1/sandboxes/${writer}?force=true`);
        return status === 200;
      });
      await until("the disk has room", async () => {
        return (await server.call("GET", "/health")).body.status === "ok";
      });
      await until("the other sandbox works", async () => {
        return (await server.exec(peaceful, "echo on")).body.stdout === "on\n";
      });
      await server.create();
    } finally {
      expect(spawnSync("umount", [disk]).status).toBe(0);
      rmdirSync(disk);
    }
  });
});
