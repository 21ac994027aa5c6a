import { describe, expect, it } from "vitest";
import { pendingEffect } from "../../../../src/core/sandbox/pending.ts";
import type { Incarnation, SandboxRecord, Start } from "../../../../src/core/sandbox/record.ts";
import { createRecord, type SandboxEvent, stepSandbox } from "../../../../src/core/sandbox/step.ts";
import { limits } from "../../../../src/protocol/limits.ts";

const spec = {
  id: "k3v9q2m7x1c5b8n4tq0w8e2r",
  tenant: "local",
  createdAt: 1_000,
  env: {},
  network: { internet: true },
  idleTimeoutMs: 600_000,
  onIdle: "pause" as const,
  wake: "auto" as const,
};
const start = (n: number): Start => ({ startId: `start${n}`, secret: `secret${n}` });
const life: Incarnation = {
  incarnation: "start1.life",
  secret: "secret1",
  address: "",
  files: "image",
  notes: [],
  isolation: {
    engine: "platform",
    user: "vm",
    files: "vm",
    processes: "vm",
    network: "vm",
    tree: "cgroup",
    memoryLimit: true,
    processLimit: false,
    diskLimit: true,
  },
};

function having(record: SandboxRecord, ...events: SandboxEvent[]): SandboxRecord {
  return events.reduce((now, event, n) => stepSandbox(now, event, 2_000 + n * 1_000), record);
}

const running = having(createRecord(spec, start(1), 1_000), {
  type: "started",
  startId: "start1",
  life,
});
const pause: SandboxEvent = { type: "pause", reason: "requested", save: true };
const saved: SandboxEvent = { type: "saved", incarnation: "start1.life", snapshot: "saved1" };
const notSaved: SandboxEvent = { type: "not_saved", incarnation: "start1.life" };
const stopped: SandboxEvent = { type: "paused", incarnation: "start1.life" };

describe("files that are lost with their container", () => {
  it("[H1] a pause saves them before it stops the container, and the next start restores them", () => {
    const pausing = having(running, pause);
    expect(pendingEffect(pausing, 9_000)).toMatchObject({ type: "save" });
    const kept = having(pausing, saved);
    expect(pendingEffect(kept, 9_000)).toMatchObject({ type: "stop" });
    const paused = having(kept, stopped);
    expect(paused.state).toMatchObject({ name: "paused", saved: "saved1" });
    const next = having(paused, { type: "wake", start: start(2) });
    expect(next.state).toMatchObject({ start: { startId: "start2", snapshot: "saved1" } });
  });

  it("[H2] a pause that cannot save does not happen: the same incarnation continues", () => {
    const back = having(running, pause, notSaved);
    expect(back.state).toMatchObject({ name: "running", life });
    // Once the files are saved or the container is stopped, the pause cannot be undone.
    const kept = having(running, pause, saved);
    expect(stepSandbox(kept, notSaved, 9_000)).toBe(kept);
  });

  it("[H3] a start during the pause begins with the files that the pause has saved", () => {
    const wanted = having(running, pause, { type: "wake", start: start(2) }, saved, stopped);
    expect(wanted.state).toMatchObject({
      name: "starting",
      start: { startId: "start2", snapshot: "saved1" },
    });
  });

  it("[H4] a restore starts from a checkpoint whatever ran before, and late events of that change nothing", () => {
    const restore: SandboxEvent = { type: "restore", start: { ...start(2), snapshot: "tree" } };
    const lost: SandboxEvent = {
      type: "lost",
      incarnation: "start1.life",
      reason: "container_lost",
    };
    for (const from of [running, having(running, lost), having(running, pause, stopped)]) {
      const restoring = stepSandbox(from, restore, 9_000);
      expect(restoring.state).toMatchObject({ name: "starting", start: { snapshot: "tree" } });
      expect(stepSandbox(restoring, lost, 9_500)).toBe(restoring);
      // Copying a tree takes longer than a plain start.
      expect(restoring.state).toMatchObject({ until: 9_000 + limits.snapshotTimeoutMs });
    }
    const destroying = having(running, { type: "destroy", reason: "requested" });
    expect(stepSandbox(destroying, restore, 9_000)).toBe(destroying);
  });

  it("[H5] a missing checkpoint leaves the sandbox with the files that it had", () => {
    const restoring = having(running, {
      type: "restore",
      start: { ...start(2), snapshot: "tree" },
    });
    const failed = having(restoring, {
      type: "start_failed",
      startId: "start2",
      reason: "snapshot_missing",
    });
    expect(failed.state).toMatchObject({ name: "failed", restartable: true });
    const restarted = having(failed, { type: "wake", start: start(3) });
    expect(restarted.state).toMatchObject({ name: "starting", start: { startId: "start3" } });
  });
});

describe("a late event of an abandoned pause", () => {
  it("[H29] does not change the next pause, which ends another incarnation", () => {
    const second = {
      type: "started",
      startId: "start2",
      life: { ...life, incarnation: "start2.life" },
    } as const;
    const late = { type: "deadline", busy: false, save: true } as const;
    const given = stepSandbox(having(running, pause), late, 9_000 + limits.snapshotTimeoutMs);
    expect(given.state).toMatchObject({ name: "failed", reason: "pause_timed_out" });
    const pausing = having(given, { type: "wake", start: start(2) }, second, pause);
    expect(pausing.state).toMatchObject({ name: "pausing", life: { incarnation: "start2.life" } });
    for (const word of [saved, notSaved, stopped])
      expect(stepSandbox(pausing, word, 9_000)).toBe(pausing);
    expect(pendingEffect(pausing, 9_000)).toEqual({ type: "save", incarnation: "start2.life" });
  });
});
