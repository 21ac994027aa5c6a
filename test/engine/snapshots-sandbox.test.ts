/** Saved trees where there is no room for them, and where they were given up before they were made. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import {
  newData,
  newId,
  removeData,
  run,
  startEngine,
  type TestEngine,
  tracesOf,
  until,
} from "./test-engine.ts";

const roomBytes = 48 * 1024 * 1024;
const isRoot = process.getuid?.() === 0;

describe("snapshots without room", () => {
  let data: string;
  let engine: TestEngine;
  let mounted = false;

  afterEach(async () => {
    const processes = engine.processes();
    expect(processes.length).toBeGreaterThan(0);
    await engine.stop();
    if (mounted) expect(spawnSync("umount", [data]).status).toBe(0);
    mounted = false;
    expect(tracesOf(data, processes)).toEqual([]);
    removeData(data);
  });

  const kept = (folder: string) => readdirSync(`${data}/${folder}`);

  // Only root may mount a small disk.
  it.skipIf(!isRoot)(
    "[R35] a full disk is told as that; the sandbox goes on and no half of a copy stays",
    async () => {
      data = newData("root");
      const options = ["-t", "tmpfs", "-o", `size=${roomBytes},mode=700`, "none", data];
      mounted = spawnSync("mount", options).status === 0;
      expect(mounted).toBe(true);
      engine = await startEngine("root", { data });
      const one = await run(engine);
      await one.sh("head -c 30000000 /dev/urandom > /workspace/large");
      const refused = { code: "disk_full", hint: expect.any(String) };
      await expect(one.container.snapshot(newId())).rejects.toMatchObject(refused);
      expect(kept("snapshots")).toEqual([]);
      await until("the trash is empty", () => kept("trash").length === 0, 90_000);
      await one.sh("head -c 10000000 /workspace/large > /workspace/less; rm /workspace/large");
      const saved = newId();
      expect((await one.container.snapshot(saved)).bytes).toBeGreaterThanOrEqual(10_000_000);
      await one.sh(
        "head -c 20000000 /dev/urandom > /workspace/large; sha256sum /workspace/* > /workspace/sums",
      );
      // What runs has ended for it; its files are still those that it had.
      await expect(run(engine, { id: one.id, snapshot: saved })).rejects.toMatchObject(refused);
      // Until the half is gone a start may find no room either.
      await until("the trash is empty", () => kept("trash").length === 0, 90_000);
      const again = await run(engine, { id: one.id });
      expect(again.started.files).toBe("kept");
      expect(await again.sh("cd /workspace && sha256sum --check sums")).toMatchObject({
        exitCode: 0,
      });
      await until("the trash is empty", () => kept("trash").length === 0, 90_000);
    },
  );

  // Only root may mount a small disk.
  it.skipIf(!isRoot)(
    "[R38] a start that finds no room is told as that, leaves nothing, and ends nobody else",
    async () => {
      data = newData("root");
      const options = ["-t", "tmpfs", "-o", `size=${roomBytes},mode=700`, "none", data];
      mounted = spawnSync("mount", options).status === 0;
      expect(mounted).toBe(true);
      engine = await startEngine("root", { data });
      const one = await run(engine);
      const filled = await one.sh("head -c 60000000 /dev/zero > /workspace/large");
      expect(filled.exitCode).not.toBe(0);
      const id = newId();
      for (let again = 0; again < 3; again++) {
        await expect(run(engine, { id })).rejects.toMatchObject({
          code: "disk_full",
          hint: expect.any(String),
        });
      }
      expect(kept("live")).toEqual([one.id]);
      expect((await one.sh("rm /workspace/large; echo goes on")).stdout).toBe("goes on\n");
      const other = await run(engine, { id });
      expect((await other.sh("echo too")).stdout).toBe("too\n");
    },
  );

  // Only root may mount a small disk.
  it.skipIf(!isRoot)(
    "[R38] [R42] where no further file can be made a start keeps no half of a tree, and an engine comes back",
    async () => {
      data = newData("root");
      const options = ["-t", "tmpfs", "-o", "size=256m,nr_inodes=4000,mode=700", "none", data];
      mounted = spawnSync("mount", options).status === 0;
      expect(mounted).toBe(true);
      engine = await startEngine("root", { data });
      const one = await run(engine);
      const fill = (from: number) =>
        one.sh(`mkdir -p /workspace/many && cd /workspace/many && seq ${from} 9999 | xargs touch`);
      await one.sh("echo kept > /workspace/file");
      expect((await fill(1)).stderr).toContain("No space left");
      const start = { id: newId() };
      for (let free = 1; free <= 5; free++) {
        expect(await one.sh(`rm /workspace/many/${free}`)).toMatchObject({ exitCode: 0 });
        await expect(run(engine, start)).rejects.toMatchObject({
          code: "disk_full",
          hint: expect.any(String),
        });
        await until("the trash is empty", () => kept("trash").length === 0, 90_000);
      }
      // Nothing of a life is left that the next engine could remove to make room.
      await one.container.destroy("keep");
      const more = () => mkdirSync(`${data}/trees/${one.id}/workspace/many/${newId()}`);
      expect(() => {
        for (;;) more();
      }).toThrow("ENOSPC");
      await engine.kill();
      engine = await startEngine("root", { data });
      rmSync(`${data}/trees/${one.id}/workspace/many`, { recursive: true });
      const again = await run(engine, { id: one.id });
      expect((await again.sh("cat /workspace/file")).stdout).toBe("kept\n");
    },
  );

  it("[R36] what was given up before it was made is not made any more", async () => {
    data = newData(isRoot ? "root" : "not root");
    engine = await startEngine(isRoot ? "root" : "not root", { data });
    const one = await run(engine);
    const [late, other] = [newId(), newId()];
    await one.container.removeSnapshot(late);
    await expect(one.container.snapshot(late)).rejects.toMatchObject({ code: "not_found" });
    expect(kept("snapshots")).toEqual([]);
    await one.container.snapshot(other);
    expect(kept("snapshots")).toEqual([other]);
    expect((await one.sh("echo on")).stdout).toBe("on\n");
  });
});
