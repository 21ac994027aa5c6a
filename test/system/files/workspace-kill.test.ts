/** kill -9 of the engine, of workerd and of the whole server in the middle of checkpoint, restore, pause and start. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { randomOf } from "../../linearizability/history.ts";
import { until } from "../../until.ts";
import { alive, processesNaming } from "../processes.ts";
import { killRounds } from "../runs/rounds.ts";
import { type Server, startServer } from "../server.ts";
import { checkpoint, engineEntries, listed, post, runPython } from "./workspace.ts";

const files = 300;
const killWithinMs = 120;
const kinds = ["checkpoint", "restore", "pause", "start"] as const;
type Kind = (typeof kinds)[number];

/** Every file says which tree it belongs to; some names are of one tree alone. */
const write = (version: number) => `
import os, shutil
for name in os.listdir("/workspace"): shutil.rmtree("/workspace/" + name)
os.mkdir("/workspace/all"); os.mkdir("/workspace/only-${version}")
for n in range(${files}): open(f"/workspace/all/{n}", "w").write("${version}")
open("/workspace/only-${version}/file", "w").write("${version}")
`;
const read = `
import os
found = []
for folder, _, names in os.walk("/workspace"): found += [open(f"{folder}/{name}").read() for name in names]
print(len(found), sorted(set(found)), sorted(os.listdir("/workspace")))
`;
const contentOf = (version: number) => `${files + 1} ['${version}'] ['all', 'only-${version}']`;

type SavedSandbox = {
  kind: Kind;
  id: string;
  version: number;
  saved: { id: string; version: number };
};

const data = mkdtempSync(join(tmpdir(), "berth-cut-"));

/** The one that runs now: a test that fails in the middle leaves it to the end. */
let running: Server | undefined;

afterAll(async () => {
  await running?.[Symbol.asyncDispose]();
  rmSync(data, { recursive: true, force: true });
});

async function started(): Promise<Server> {
  running = await startServer({ data });
  return running;
}

describe("kill -9 in the middle of saving and restoring", () => {
  it("[H24] repeated, leaves the old tree or the new one, and neither a tree without a row nor a row without a tree", {
    timeout: 600_000,
  }, async () => {
    let server = await started();
    const sandboxes: SavedSandbox[] = [];
    for (const kind of kinds) {
      const id = await server.create();
      await runPython(server, id, write(1));
      const saved = { id: await checkpoint(server, id), version: 1 };
      await runPython(server, id, write(2));
      if (kind === "start") await post(server, id, "pause");
      sandboxes.push({ kind, id, version: 2, saved });
    }
    const cut = new Map<Kind, number>();
    const victims = new Map<string, number>();
    for (let round = 1; round <= killRounds; round += 1) {
      const random = randomOf(round);
      const killAfterMs = random(killWithinMs);
      const calls = sandboxes.map((sandbox) => begin(server, sandbox));
      await pause(killAfterMs);
      for (const { box: sandbox, answered } of calls) {
        if (!answered()) cut.set(sandbox.kind, (cut.get(sandbox.kind) ?? 0) + 1);
      }
      const victim = ["engine", "workerd", "server"][round % 3] ?? "";
      victims.set(victim, (victims.get(victim) ?? 0) + 1);
      const tree = server.processes();
      kill(server, victim);
      await Promise.all(calls.map(({ over }) => over));
      if (victim === "engine") {
        await until("the engine is back", () =>
          server.processes().some(({ command }) => command.includes("container/engine/main.ts")),
        );
      } else {
        await server.ended();
        server = await started();
        expect(alive(tree)).toEqual([]);
      }
      await Promise.all(sandboxes.map((sandbox) => check(server, sandbox, round)));
      await agree(server, sandboxes);
    }
    for (const kind of kinds) expect(cut.get(kind) ?? 0, kind).toBeGreaterThan(0);
    expect(victims.size).toBe(3);
    console.log(
      JSON.stringify({ cutOff: Object.fromEntries(cut), ...Object.fromEntries(victims) }),
    );

    // Each row that is left leads to a whole tree.
    for (const { id, saved } of sandboxes) {
      for (const checkpointId of await listed(server, id)) {
        const back = await post(server, id, `checkpoints/${checkpointId}/restore`);
        expect(back.body).toMatchObject({ state: "running", files: "snapshot" });
        const now = (await runPython(server, id, read)).trim();
        if (checkpointId === saved.id) expect(now).toBe(contentOf(saved.version));
        expect(now).toMatch(new RegExp(`^${files + 1} \\['\\d+'\\]`));
      }
      expect((await server.call("DELETE", `/v1/sandboxes/${id}`)).body.state).toBe("destroyed");
    }
    expect([engineEntries(server, "trees"), engineEntries(server, "snapshots")]).toEqual([[], []]);
    await until("the trash is empty", () => engineEntries(server, "trash").length === 0, 120_000);
    const tree = server.processes();
    await server.stop();
    running = undefined;
    await until("every process is gone", () => alive(tree).length === 0);
    expect(processesNaming(data)).toEqual([]);
    expect(readFileSync("/proc/mounts", "utf8")).not.toContain(data);
    expect(readdirSync(join(data, "engine", "live"))).toEqual([]);
  });
});

/** A call of the box's kind, which may never be answered. */
function begin(server: Server, sandbox: SavedSandbox) {
  const { kind, id, saved } = sandbox;
  const what = {
    checkpoint: "checkpoints",
    restore: `checkpoints/${saved.id}/restore`,
    pause: "pause",
    start: "start",
  }[kind];
  let over = false;
  const call = post(server, id, what, kind === "checkpoint" ? {} : undefined).then(
    ({ status, body }) => {
      over = true;
      expect(status, JSON.stringify(body)).not.toBe(500);
    },
    () => undefined,
  );
  return { box: sandbox, answered: () => over, over: call };
}

function kill(server: Server, victim: string): void {
  const engine = server.processOf("container/engine/main.ts");
  const workerd = server.processOf("workerd serve");
  const all = { engine: [engine], workerd: [workerd] }[victim] ?? [
    server.launcher,
    workerd,
    engine,
  ];
  for (const { pid } of all) process.kill(pid, "SIGKILL");
}

/** It settles, starts, and has one whole tree: what it had, or for a restore what was saved. */
async function check(server: Server, sandbox: SavedSandbox, round: number): Promise<void> {
  const { kind, id, saved } = sandbox;
  await until(`${kind} of round ${round} settles`, async () => {
    await server.call("GET", `/v1/sandboxes/${id}/processes`).catch(() => undefined);
    const { status, body } = await server.call("GET", `/v1/sandboxes/${id}`);
    return status === 200 && ["running", "paused", "failed"].includes(String(body.state));
  });
  await until(`${kind} of round ${round} starts`, async () => {
    return (await post(server, id, "start")).body.state === "running";
  });
  const is = (await runPython(server, id, read)).trim();
  const allowed = kind === "restore" ? [sandbox.version, saved.version] : [sandbox.version];
  expect(allowed.map(contentOf), `${kind}, round ${round}`).toContain(is);
  sandbox.version += 2;
  await runPython(server, id, write(sandbox.version));
  if (kind === "start") expect((await post(server, id, "pause")).body.state).toBe("paused");
  // Not more than a handful is kept, the first among them.
  for (const checkpointId of (await listed(server, id)).slice(0, -1)) {
    await server.call("DELETE", `/v1/sandboxes/${id}/checkpoints/${checkpointId}`);
  }
}

/** Rows and trees, of sandboxes and of checkpoints; nothing half made is left. */
async function agree(server: Server, sandboxes: SavedSandbox[]): Promise<void> {
  expect(engineEntries(server, "trees")).toEqual(sandboxes.map(({ id }) => id).sort());
  await until("rows and trees of checkpoints agree", async () => {
    const rows = await Promise.all(sandboxes.map(({ id }) => listed(server, id)));
    expect(rows.every((ids, n) => ids.includes(sandboxes[n]?.saved.id ?? ""))).toBe(true);
    return rows.flat().length === engineEntries(server, "snapshots").length;
  });
  await until("the trash is empty", () => engineEntries(server, "trash").length === 0, 120_000);
}
