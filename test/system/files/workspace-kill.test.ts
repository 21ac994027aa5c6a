/** kill -9 of the engine, of workerd and of the whole server in the middle of checkpoint, restore, pause and start. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { randomOf } from "../../linearizability/history.ts";
import { until } from "../../until.ts";
import { killRounds, Restarts, type Victim } from "../file-server.ts";
import type { Server } from "../server.ts";
import {
  checkpoint,
  engineEntries,
  listed,
  post,
  readVersion,
  trashIsEmpty,
  versionContent,
  writeVersion,
} from "./workspace.ts";

const files = 300;
const killWithinMs = 120;
const kinds = ["checkpoint", "restore", "pause", "start"] as const;
type Kind = (typeof kinds)[number];
const victims: Victim[] = ["engine", "workerd", "server"];

const contentOf = (version: number) => versionContent(version, files);

type SavedSandbox = {
  kind: Kind;
  id: string;
  version: number;
  saved: { id: string; version: number };
};

const servers = new Restarts();

describe("kill -9 in the middle of saving and restoring", () => {
  it("[H24] repeated, leaves the old tree or the new one, and neither a tree without a row nor a row without a tree", {
    timeout: 600_000,
  }, async () => {
    let server = await servers.start();
    const sandboxes: SavedSandbox[] = [];
    for (const kind of kinds) {
      const id = await server.create();
      await writeVersion(server, id, 1, files);
      const saved = { id: await checkpoint(server, id), version: 1 };
      await writeVersion(server, id, 2, files);
      if (kind === "start") await post(server, id, "pause");
      sandboxes.push({ kind, id, version: 2, saved });
    }
    const cut = new Map<Kind, number>();
    const killed = new Map<string, number>();
    for (let round = 1; round <= killRounds; round += 1) {
      const random = randomOf(round);
      const killAfterMs = random(killWithinMs);
      const calls = sandboxes.map((sandbox) => begin(server, sandbox));
      await pause(killAfterMs);
      for (const { sandbox, answered } of calls) {
        if (!answered()) cut.set(sandbox.kind, (cut.get(sandbox.kind) ?? 0) + 1);
      }
      const victim = victims[round % 3] ?? "server";
      killed.set(victim, (killed.get(victim) ?? 0) + 1);
      server = await servers.kill(server, victim);
      await Promise.all(calls.map(({ over }) => over));
      await Promise.all(sandboxes.map((sandbox) => check(server, sandbox, round)));
      await agree(server, sandboxes);
    }
    for (const kind of kinds) expect(cut.get(kind) ?? 0, kind).toBeGreaterThan(0);
    expect(killed.size).toBe(3);
    console.log(JSON.stringify({ cutOff: Object.fromEntries(cut), ...Object.fromEntries(killed) }));

    // Each row that is left leads to a whole tree.
    for (const { id, saved } of sandboxes) {
      for (const checkpointId of await listed(server, id)) {
        const back = await post(server, id, `checkpoints/${checkpointId}/restore`);
        expect(back.body).toMatchObject({ state: "running", files: "snapshot" });
        const now = await readVersion(server, id);
        if (checkpointId === saved.id) expect(now).toBe(contentOf(saved.version));
        expect(now).toMatch(new RegExp(`^${files + 1} \\['\\d+'\\]`));
      }
      expect((await server.call("DELETE", `/v1/sandboxes/${id}`)).body.state).toBe("destroyed");
    }
    expect([engineEntries(server, "trees"), engineEntries(server, "snapshots")]).toEqual([[], []]);
    await trashIsEmpty(server);
    await servers.stop(server);
    expect(readdirSync(join(servers.data, "engine", "live"))).toEqual([]);
  });
});

/** A call of the sandbox's kind, which may never be answered. */
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
  return { sandbox, answered: () => over, over: call };
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
  const is = await readVersion(server, id);
  const allowed = kind === "restore" ? [sandbox.version, saved.version] : [sandbox.version];
  expect(allowed.map(contentOf), `${kind}, round ${round}`).toContain(is);
  sandbox.version += 2;
  await writeVersion(server, id, sandbox.version, files);
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
  await trashIsEmpty(server);
}
