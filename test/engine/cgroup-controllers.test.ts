/** A move between control groups that changes nothing, made ahead of those of an agent that comes up. */
import { mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  engineFolders,
  findHierarchies,
  moveAhead,
} from "../../container/engine/cgroups/controllers.ts";
import { until } from "./test-engine.ts";

const none = { unified: undefined, memory: undefined, processes: undefined };

describe("a move that changes nothing", () => {
  it("[R43] is asked of the group in which the engine stands, and leaves it there", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-group-"));
    const list = join(folder, "cgroup.procs");
    writeFileSync(list, "");
    moveAhead({ ...none, standing: folder });
    await until("it is asked for", () => readFileSync(list, "utf8") === String(process.pid));
    rmSync(folder, { recursive: true });
    const before = readFileSync("/proc/self/cgroup", "utf8");
    const found = findHierarchies("test-of-moves");
    for (const own of engineFolders(found)) rmdirSync(own);
    const { standing } = found;
    if (standing !== undefined) {
      expect(readFileSync(`${standing}/cgroup.procs`, "utf8").split("\n")).toContain(
        String(process.pid),
      );
      moveAhead({ ...none, standing });
    }
    expect(readFileSync("/proc/self/cgroup", "utf8")).toBe(before);
  });

  it("[R43] is nothing where there is no such group, or none that can be written to", async () => {
    const thrown: unknown[] = [];
    const hear = (error: unknown) => thrown.push(error);
    process.on("uncaughtException", hear);
    moveAhead({ ...none, standing: undefined });
    moveAhead({ ...none, standing: "/nowhere" });
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.off("uncaughtException", hear);
    expect(thrown).toEqual([]);
  });
});
