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
        return (await server.call("GET", "/health")).body.status === "ok";
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
});
