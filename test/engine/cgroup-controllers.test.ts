/** The cgroup move that changes nothing, made before the moves of a starting agent, and the weight of all sandboxes. */
import { mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  type CgroupControllers,
  countsTcpMemory,
  engineFolders,
  findCgroupControllers,
  warmUpCgroupMoves,
} from "../../container/engine/cgroups/controllers.ts";
import { until } from "../until.ts";

const none = { unified: undefined, memory: undefined, processes: undefined, cpu: undefined };

describe("the warm-up move between cgroups", () => {
  it("[R43] moves the engine into the group that it is already in", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-group-"));
    const list = join(folder, "cgroup.procs");
    writeFileSync(list, "");
    warmUpCgroupMoves({ ...none, engineGroup: folder });
    await until("the move", () => readFileSync(list, "utf8") === String(process.pid));
    rmSync(folder, { recursive: true });
    const before = readFileSync("/proc/self/cgroup", "utf8");
    const found = findCgroupControllers("test-of-moves");
    for (const own of engineFolders(found)) rmdirSync(own);
    const { engineGroup } = found;
    if (engineGroup !== undefined) {
      expect(readFileSync(`${engineGroup}/cgroup.procs`, "utf8").split("\n")).toContain(
        String(process.pid),
      );
      warmUpCgroupMoves({ ...none, engineGroup });
    }
    expect(readFileSync("/proc/self/cgroup", "utf8")).toBe(before);
  });

  it("[R43] does nothing without such a group, or if it cannot be written", async () => {
    const thrown: unknown[] = [];
    const onException = (error: unknown) => thrown.push(error);
    process.on("uncaughtException", onException);
    warmUpCgroupMoves({ ...none, engineGroup: undefined });
    warmUpCgroupMoves({ ...none, engineGroup: "/nowhere" });
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.off("uncaughtException", onException);
    expect(thrown).toEqual([]);
  });
});

describe("the controllers of an engine", () => {
  it("[R46] count the memory of TCP connections, unless version 1 runs on a kernel without that limit", () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-group-"));
    const counts = (memory: CgroupControllers["memory"]) =>
      countsTcpMemory({ ...none, engineGroup: undefined, memory });
    expect(counts(undefined)).toBe(false);
    expect(counts({ folder, version: 2 })).toBe(true);
    expect(counts({ folder, version: 1 })).toBe(false);
    writeFileSync(join(folder, "memory.kmem.tcp.limit_in_bytes"), "");
    expect(counts({ folder, version: 1 })).toBe(true);
    rmSync(folder, { recursive: true });
  });

  it("[R45] gives all sandboxes together half of the usual weight for the processor", () => {
    const found = findCgroupControllers("test-of-weights");
    const { cpu } = found;
    const [file, half] = cpu?.version === 2 ? ["cpu.weight", 50] : ["cpu.shares", 512];
    const weight = cpu === undefined ? undefined : readFileSync(`${cpu.folder}/${file}`, "utf8");
    for (const own of engineFolders(found)) rmdirSync(own);
    if (cpu === undefined) console.warn("SKIPPED weights: this user cannot write to a cpu cgroup");
    else expect(Number(weight)).toBe(half);
  });
});
