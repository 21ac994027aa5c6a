/** Saved trees of a real Berth, to the byte: random ones, and a large one whose figures are printed. */
import fc from "fast-check";
import { afterAll, describe, expect, it, vi } from "vitest";
import { until } from "../../until.ts";
import { startFileServer } from "../file-server.ts";
import {
  applyChanges,
  checkpoint,
  engineEntries,
  listed,
  post,
  restore,
  runPython,
  settled,
  type TreeChange,
  trashIsEmpty,
  treeChange,
  treeSnapshot,
} from "./workspace.ts";

vi.setConfig({ testTimeout: 240_000 });

const treesEach = 12;
const files = 20_000;
const bytes = 200_000_000;

const server = await startFileServer();

describe("saved trees", () => {
  afterAll(() => trashIsEmpty(server));

  it("[H14] a random tree that is saved, changed and restored equals the saved one to the byte, and so does a fork's", async () => {
    const id = await server.create();
    let [entries, kinds] = [0, new Set<string>()];
    const later: TreeChange = ["write", Buffer.from("/workspace/later").toString("hex"), 1, 5];
    const deeds = (max: number) => fc.array(treeChange, { minLength: 20, maxLength: max });
    await fc.assert(
      fc.asyncProperty(deeds(80), deeds(60), fc.boolean(), async (first, then, asFork) => {
        await applyChanges(server, id, first);
        const before = await treeSnapshot(server, id);
        const saved = await checkpoint(server, id);
        expect(await treeSnapshot(server, id), "saving changes nothing").toBe(before);
        // One change at least, and one file that was not there.
        expect(await applyChanges(server, id, [...then, later])).toBeGreaterThan(0);
        expect(await treeSnapshot(server, id)).not.toBe(before);
        if (asFork) {
          const fork = await server.create({ from: saved });
          expect(await treeSnapshot(server, fork)).toBe(before);
          await server.call("DELETE", `/v1/sandboxes/${fork}`);
        }
        await restore(server, id, saved);
        expect(await treeSnapshot(server, id)).toBe(before);
        expect(before).not.toContain(Buffer.from("/workspace/later").toString("hex"));
        await server.call("DELETE", `/v1/sandboxes/${id}/checkpoints/${saved}`);
        for (const line of before.trim().split("\n")) {
          entries += 1;
          kinds = kinds.add(line.split(" ")[1]?.slice(0, -4) ?? "");
        }
      }),
      { numRuns: treesEach, endOnFailure: true },
    );
    expect(entries).toBeGreaterThan(treesEach * 5);
    // Folders, files, links, pipes.
    expect(kinds.size).toBeGreaterThanOrEqual(4);
    expect(await listed(server, id)).toEqual([]);
    await until(
      "their trees are gone",
      () => engineEntries(server, "snapshots").length === 0,
      120_000,
    );
    await server.call("DELETE", `/v1/sandboxes/${id}`);
  });

  it("[H15] 200 MB in 20,000 files survive pause, start, checkpoint and restore; the figures are printed", async () => {
    const id = await server.create();
    const write = `
import os
for n in range(${files}):
    at = f"/workspace/{n // 200}"
    if n % 200 == 0: os.mkdir(at)
    with open(f"{at}/{n}", "wb") as f: f.write(n.to_bytes(4, "big") * ${bytes / files / 4})
`;
    await runPython(server, id, write);
    const before = await treeSnapshot(server, id);
    expect(before.split("\n").length).toBeGreaterThan(files);
    const figures: Record<string, number> = {};
    const timed = async (what: string, work: () => Promise<unknown>) => {
      const began = performance.now();
      await work();
      figures[what] = Math.round(performance.now() - began);
    };
    const is = async (what: string, state: string) => {
      expect((await post(server, id, what)).status).toBe(200);
      await settled(server, id, state);
    };
    await timed("pauseMs", () => is("pause", "paused"));
    await timed("startMs", () => is("start", "running"));
    expect(await treeSnapshot(server, id)).toBe(before);
    let saved = "";
    await timed("checkpointMs", async () => {
      saved = await checkpoint(server, id);
    });
    await runPython(
      server,
      id,
      `import shutil; shutil.rmtree("/workspace/7"); open("/workspace/new", "w")`,
    );
    expect(await treeSnapshot(server, id)).not.toBe(before);
    await timed("restoreMs", () => restore(server, id, saved));
    expect(await treeSnapshot(server, id)).toBe(before);
    console.log(JSON.stringify({ files, bytes, ...figures }));
    await server.call("DELETE", `/v1/sandboxes/${id}`);
    expect(engineEntries(server, "snapshots")).toEqual([]);
    expect(engineEntries(server, "trees")).toEqual([]);
  });
});
