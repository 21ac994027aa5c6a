/** Snapshots on a full disk, and snapshots that were removed before they were made. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../until.ts";
import {
  newData,
  newId,
  removeData,
  run,
  startEngine,
  type TestEngine,
  tracesOf,
} from "./test-engine.ts";

const smallDisk = "size=48m";
const refused = { code: "disk_full", hint: expect.any(String) };
const isRoot = process.getuid?.() === 0;

describe("snapshots on a full disk", () => {
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

  /** Starts an engine on a disk of its own, which only root may mount. */
  const startOnDisk = async (options: string) => {
    data = newData("root");
    const mount = ["-t", "tmpfs", "-o", `${options},mode=700`, "none", data];
    mounted = spawnSync("mount", mount).status === 0;
    expect(mounted).toBe(true);
    // The disk is smaller than what the server keeps free by default.
    const env = { BERTH_ENGINE_DISK_FREE_MIN: "0" };
    engine = await startEngine("root", { data, env });
  };
  const untilTrashIsEmpty = () =>
    until("the trash is empty", () => entriesOf("trash").length === 0, 90_000);
  const entriesOf = (folder: string) => readdirSync(`${data}/${folder}`);

  it.skipIf(!isRoot)(
    "[R35] a full disk is reported as such; the sandbox continues and no partial copy stays",
    async () => {
      await startOnDisk(smallDisk);
      const sandbox = await run(engine);
      await sandbox.sh("head -c 30000000 /dev/urandom > /workspace/large");
      await expect(sandbox.container.snapshot(newId())).rejects.toMatchObject(refused);
      expect(entriesOf("snapshots")).toEqual([]);
      await untilTrashIsEmpty();
      await sandbox.sh("head -c 10000000 /workspace/large > /workspace/less; rm /workspace/large");
      const saved = newId();
      expect((await sandbox.container.snapshot(saved)).bytes).toBeGreaterThanOrEqual(10_000_000);
      await sandbox.sh(
        "head -c 20000000 /dev/urandom > /workspace/large; sha256sum /workspace/* > /workspace/sums",
      );
      // The running incarnation has ended for the restore; the files are unchanged.
      await expect(run(engine, { id: sandbox.id, snapshot: saved })).rejects.toMatchObject(refused);
      // Until the partial copy is removed, a start may find the disk full too.
      await untilTrashIsEmpty();
      const restarted = await run(engine, { id: sandbox.id });
      expect(restarted.started.files).toBe("kept");
      expect(await restarted.sh("cd /workspace && sha256sum --check sums")).toMatchObject({
        exitCode: 0,
      });
      await untilTrashIsEmpty();
    },
  );

  it.skipIf(!isRoot)(
    "[R38] a start on a full disk is reported as such, leaves nothing, and ends no other sandbox",
    async () => {
      await startOnDisk(smallDisk);
      const sandbox = await run(engine);
      const filled = await sandbox.sh("head -c 60000000 /dev/zero > /workspace/large");
      expect(filled.exitCode).not.toBe(0);
      const id = newId();
      for (let attempt = 0; attempt < 3; attempt++) {
        await expect(run(engine, { id })).rejects.toMatchObject(refused);
      }
      expect(entriesOf("live")).toEqual([sandbox.id]);
      expect((await sandbox.sh("rm /workspace/large; echo running")).stdout).toBe("running\n");
      const other = await run(engine, { id });
      expect((await other.sh("echo too")).stdout).toBe("too\n");
    },
  );

  it.skipIf(!isRoot)(
    "[R38] [R42] without free inodes a start keeps no partial tree, and an engine can restart",
    async () => {
      await startOnDisk("size=256m,nr_inodes=4000");
      const sandbox = await run(engine);
      const fill = (from: number) =>
        sandbox.sh(
          `mkdir -p /workspace/many && cd /workspace/many && seq ${from} 9999 | xargs touch`,
        );
      await sandbox.sh("echo kept > /workspace/file");
      expect((await fill(1)).stderr).toContain("No space left");
      const start = { id: newId() };
      for (let free = 1; free <= 5; free++) {
        expect(await sandbox.sh(`rm /workspace/many/${free}`)).toMatchObject({ exitCode: 0 });
        await expect(run(engine, start)).rejects.toMatchObject(refused);
        await untilTrashIsEmpty();
      }
      // Leaves nothing that the next engine could remove to free space.
      await sandbox.container.destroy("keep");
      const more = () => mkdirSync(`${data}/trees/${sandbox.id}/workspace/many/${newId()}`);
      expect(() => {
        for (;;) more();
      }).toThrow("ENOSPC");
      await engine.kill();
      engine = await startEngine("root", { data });
      rmSync(`${data}/trees/${sandbox.id}/workspace/many`, { recursive: true });
      const restarted = await run(engine, { id: sandbox.id });
      expect((await restarted.sh("cat /workspace/file")).stdout).toBe("kept\n");
    },
  );

  it("[R36] a snapshot that was removed before it was made is not made", async () => {
    const as = isRoot ? "root" : "not root";
    data = newData(as);
    engine = await startEngine(as, { data });
    const sandbox = await run(engine);
    const [removed, other] = [newId(), newId()];
    await sandbox.container.removeSnapshot(removed);
    await expect(sandbox.container.snapshot(removed)).rejects.toMatchObject({ code: "not_found" });
    expect(entriesOf("snapshots")).toEqual([]);
    await sandbox.container.snapshot(other);
    expect(entriesOf("snapshots")).toEqual([other]);
    expect((await sandbox.sh("echo on")).stdout).toBe("on\n");
  });
});
