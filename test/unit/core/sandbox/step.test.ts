import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newLease } from "../../../../src/core/lease/lease.ts";
import { emptyMetadata } from "../../../../src/core/metadata/patch.ts";
import { admitCall } from "../../../../src/core/sandbox/admit.ts";
import { pendingEffect, sandboxDeadline } from "../../../../src/core/sandbox/pending.ts";
import type {
  Incarnation,
  SandboxRecord,
  SandboxState,
  Start,
} from "../../../../src/core/sandbox/record.ts";
import { createRecord, type SandboxEvent, stepSandbox } from "../../../../src/core/sandbox/step.ts";
import { viewSandbox } from "../../../../src/core/sandbox/view.ts";
import { stateNames } from "../../../../src/protocol/fields/forms.ts";
import { limits } from "../../../../src/protocol/limits.ts";
import { sandboxSchema } from "../../../../src/protocol/sandbox.ts";

const spec = {
  id: "k3v9q2m7x1c5b8n4tq0w8e2r",
  tenant: "local",
  createdAt: 1_000,
  env: { TOKEN: "canary" },
  network: { internet: true },
  idleTimeoutMs: 600_000,
  onIdle: "pause" as const,
  wake: "auto" as const,
};
const start = (n: number): Start => ({ startId: `start${n}`, secret: `secret${n}` });
const life = (n: number): Incarnation => ({
  incarnation: `start${n}.life`,
  secret: `secret${n}`,
  address: "http://127.0.0.1:1",
  files: "new",
  notes: [],
  isolation: {
    engine: "embedded",
    user: "own",
    files: "overlay",
    processes: "namespace",
    network: "none",
    tree: "cgroup",
    memoryLimit: true,
    processLimit: true,
    diskLimit: false,
  },
});
const created = createRecord(spec, start(1), 1_000);

/** Applies events one second apart and returns the last record. */
function having(record: SandboxRecord, ...events: SandboxEvent[]): SandboxRecord {
  return events.reduce((now, event, n) => stepSandbox(now, event, 2_000 + n * 1_000), record);
}

const up: SandboxEvent = { type: "started", startId: "start1", life: life(1) };
const lost: SandboxEvent = { type: "lost", incarnation: "start1.life", reason: "container_lost" };
const destroy: SandboxEvent = { type: "destroy", reason: "requested" };
const tick = { type: "deadline", busy: false, save: false } as const;
const wake = (n: number): SandboxEvent => ({ type: "wake", start: start(n) });
const startAs = (n: number): SandboxEvent => ({ type: "start", start: start(n) });
const paused: SandboxEvent = { type: "paused", incarnation: "start1.life" };

describe("the transitions of a sandbox", () => {
  it("[S1] a created sandbox requires a start until it has a container", () => {
    expect(created.state.name).toBe("starting");
    expect(pendingEffect(created, 1_000)).toEqual(startAs(1));
    expect(pendingEffect(created, 9_000)).toEqual(startAs(1));
  });

  it("[S3] an event of an earlier start or incarnation changes nothing", () => {
    const running = having(created, up);
    expect(running.state.name).toBe("running");
    const late: SandboxEvent[] = [
      { type: "started", startId: "start0", life: life(0) },
      { type: "start_failed", startId: "start1", reason: "start_refused" },
      { type: "lost", incarnation: "start0.life", reason: "container_lost" },
      wake(2),
      { type: "destroyed" },
      tick,
    ];
    for (const event of late) expect(stepSandbox(running, event, 9_000), event.type).toBe(running);
  });

  it("[S30] the third lack of memory in ten minutes ends the restarts, and an older one does not count", () => {
    const ends = (...at: number[]) =>
      at.reduce((record, now) => {
        const restarted = stepSandbox(record, startAs(1), now);
        const running = stepSandbox(restarted, { ...up }, now);
        return stepSandbox(running, { ...lost, reason: "out_of_memory" }, now);
      }, created);
    const window = limits.restartsWindowMs;
    expect(ends(10, 20).state).toMatchObject({ reason: "out_of_memory", restartable: true });
    expect(ends(10, 20, 30).state).toMatchObject({ reason: "out_of_memory", restartable: false });
    expect(admitCall(ends(10, 20, 30), true)).toMatchObject({ refuse: { code: "start_failed" } });
    expect(ends(10, 20, 9 + window).state).toMatchObject({ restartable: false });
    expect(ends(10, 20, 10 + window).state).toMatchObject({ restartable: true });
    expect(ends(10, 20, 30, 30 + window).outOfMemory).toEqual([30 + window]);
  });

  it("[S4] a destroy wins over a running start, whose late success is dropped", () => {
    const destroying = having(created, destroy);
    expect(destroying.state.name).toBe("destroying");
    expect(stepSandbox(destroying, up, 9_000)).toBe(destroying);
    expect(pendingEffect(destroying, 9_000)).toEqual({ type: "destroy" });
  });

  it("[S5] destroyed is final, and forgotten after seven days", () => {
    const destroyed = having(created, destroy, { type: "destroyed" });
    expect(destroyed.state).toMatchObject({ name: "destroyed", reason: "requested", since: 3_000 });
    for (const event of [up, lost, destroy, wake(2)]) {
      expect(stepSandbox(destroyed, event, 9_000)).toBe(destroyed);
    }
    const end = 3_000 + limits.tombstoneMs;
    expect(sandboxDeadline(destroyed)).toEqual({ at: end, why: "tombstone expiry" });
    expect(pendingEffect(destroyed, end - 1)).toBeUndefined();
    expect(pendingEffect(destroyed, end)).toEqual({ type: "forget" });
  });

  it("[S6] a lost container is restarted at most three times in ten minutes", () => {
    let record = having(created, up);
    for (let n = 2; n <= 4; n++) {
      const incarnation = `start${n - 1}.life`;
      record = stepSandbox(record, { ...lost, incarnation }, n * 10_000);
      expect(admitCall(record, true)).toEqual({ wake: true });
      record = stepSandbox(record, wake(n), n * 10_000);
      expect(record.state).toMatchObject({ name: "starting", start: start(n) });
      record = stepSandbox(
        record,
        { type: "started", startId: `start${n}`, life: life(n) },
        n * 10_000,
      );
    }
    record = stepSandbox(record, { ...lost, incarnation: "start4.life" }, 50_000);
    const tooOften = stepSandbox(record, wake(5), 50_000);
    expect(tooOften.state).toMatchObject({ name: "failed", reason: "restarted_too_often" });
    expect(admitCall(tooOften, true)).toMatchObject({ refuse: { code: "start_failed" } });
    const later = stepSandbox(record, wake(5), 50_000 + limits.restartsWindowMs);
    expect(later.state.name).toBe("starting");
  });

  it("[S38] the end of the server or its engine counts against no sandbox, and pauses it, however often", () => {
    let record = having({ ...created, spec: { ...created.spec, wake: "never" } }, up);
    for (let n = 2; n <= 12; n++) {
      const now = n * 1_000;
      const early = { type: "server_ended", incarnation: "start0.life" } as const;
      expect(stepSandbox(record, early, now)).toBe(record);
      record = stepSandbox(record, { ...early, incarnation: `start${n - 1}.life` }, now);
      expect(record.state).toMatchObject({ name: "paused", reason: "server_ended" });
      // Nobody has asked for this pause, so a call ends it even where calls may not.
      expect(admitCall(record, true)).toEqual({ wake: true });
      record = stepSandbox(record, wake(n), now);
      record = stepSandbox(record, { type: "started", startId: `start${n}`, life: life(n) }, now);
      expect(record).toMatchObject({ state: { name: "running" }, restarts: [] });
    }
  });

  it("[S39] a start by hand starts a sandbox that was lost too often, and sets the count to zero", () => {
    const stamps = [1, 2, 3].map((n) => n * 1_000);
    const tooOften = stepSandbox(
      { ...having(created, up, lost), restarts: stamps, outOfMemory: stamps },
      wake(2),
      5_000,
    );
    expect(tooOften.state).toMatchObject({ reason: "restarted_too_often", restartable: false });
    const started = stepSandbox(tooOften, startAs(3), 6_000);
    expect(started).toMatchObject({
      state: { name: "starting" },
      restarts: [],
      outOfMemory: stamps,
    });
    const running = stepSandbox(
      started,
      { ...up, startId: "start3", life: life(3) } as SandboxEvent,
      7_000,
    );
    const lostOnce = stepSandbox(
      running,
      { ...lost, incarnation: "start3.life" } as SandboxEvent,
      8_000,
    );
    expect(admitCall(lostOnce, true)).toEqual({ wake: true });
  });

  it("[S7] a start that never succeeds fails at its limit and is not repeated", () => {
    const looked = stepSandbox(created, tick, 1_000 + limits.startProbeMs);
    expect(looked.state).toMatchObject({ name: "starting", start: start(1) });
    const late = stepSandbox(looked, tick, 1_000 + limits.startTimeoutMs);
    expect(late.state).toMatchObject({ reason: "start_timed_out", restartable: false });
    expect(admitCall(late, true)).toMatchObject({ refuse: { code: "start_failed" } });
  });

  it("[S8] a destroy that is not confirmed is repeated at growing intervals, without end", () => {
    let record = having(created, destroy);
    const pauses: number[] = [];
    for (let n = 0; n < 10; n++) {
      const dueAt = sandboxDeadline(record)?.at ?? 0;
      expect(stepSandbox(record, tick, dueAt - 1)).toBe(record);
      record = stepSandbox(record, tick, dueAt);
      pauses.push((sandboxDeadline(record)?.at ?? 0) - dueAt);
      expect(pendingEffect(record, dueAt)).toEqual({ type: "destroy" });
    }
    expect(pauses).toEqual([2, 4, 8, 16, 32, 64, 64, 64, 64, 64].map((s) => s * 1000));
  });

  it("[S2] every transient state has a deadline with a reason, and destroyed is final", () => {
    const number = fc.integer({ min: 1, max: 3 });
    const incarnation = number.map((n) => `start${n}.life`);
    const event: fc.Arbitrary<SandboxEvent> = fc.oneof(
      number.map((n) => ({ type: "started" as const, startId: `start${n}`, life: life(n) })),
      number.map((n) => ({
        type: "start_failed" as const,
        startId: `start${n}`,
        reason: "start_refused" as const,
      })),
      number.map((n) => ({
        type: "lost" as const,
        incarnation: `start${n}.life`,
        reason: "container_lost" as const,
      })),
      number.map((n) => ({ type: "wake" as const, start: start(n) })),
      number.map((n) => ({ type: "start" as const, start: start(n) })),
      fc.boolean().map((save) => ({ type: "pause" as const, reason: "requested", save })),
      incarnation.map((of) => ({ type: "saved" as const, incarnation: of, snapshot: "saved" })),
      incarnation.map((of) => ({ type: "not_saved" as const, incarnation: of })),
      fc.constant({ type: "restore" as const, start: { ...start(4), snapshot: "saved" } }),
      incarnation.map((of) => ({ type: "paused" as const, incarnation: of })),
      fc.boolean().map((busy) => ({ type: "deadline" as const, busy, save: !busy })),
      fc.constant(destroy),
      fc.constant({ type: "destroyed" as const }),
      fc.constant(tick),
    );
    const seen = new Set<SandboxState["name"]>();
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.nat(70_000)), { maxLength: 40 }), (events) => {
        let record = created;
        let now = 1_000;
        let over = false;
        for (const [next, ms] of events) {
          now += ms;
          record = stepSandbox(record, next, now);
          const { state } = record;
          seen.add(state.name);
          if (over) expect(["destroying", "destroyed"]).toContain(state.name);
          over ||= state.name === "destroying";
          const transient = ["starting", "pausing", "destroying"].includes(state.name);
          if (transient) expect(sandboxDeadline(record)?.why).toBeTruthy();
          expect(transient).toBe(pendingEffect(record, state.since) !== undefined);
          sandboxSchema.parse(viewSandbox(record, emptyMetadata, newLease));
        }
      }),
      { numRuns: 2000, seed: 7 },
    );
    expect([...seen].sort()).toEqual([...stateNames].sort());
  });

  it("[S14] pauses, keeps its files for the next start, and starts again if that is requested during the pause", () => {
    const running = having(created, up);
    const pausing = stepSandbox(
      running,
      { type: "pause", reason: "requested", save: false },
      9_000,
    );
    expect(pausing.state.name).toBe("pausing");
    expect(stepSandbox(pausing, { type: "pause", reason: "again", save: false }, 9_500)).toBe(
      pausing,
    );
    const stopped = stepSandbox(pausing, paused, 10_000);
    expect(stopped.state).toMatchObject({ name: "paused", reason: "requested" });
    expect(admitCall(stopped, true)).toEqual({ wake: true });
    expect(admitCall(stopped, false)).toMatchObject({ refuse: { code: "not_running" } });
    expect(stepSandbox(stopped, wake(2), 11_000).state.name).toBe("starting");
    const wanted = stepSandbox(pausing, startAs(3), 9_600);
    expect(admitCall(wanted, true)).toEqual({ wait: true });
    expect(stepSandbox(wanted, paused, 10_000).state).toMatchObject({
      name: "starting",
      start: start(3),
    });
    const stuck = stepSandbox(pausing, tick, 9_000 + limits.pauseTimeoutMs);
    expect(stuck.state).toMatchObject({ name: "failed", restartable: true });
  });

  it("[S15] is created paused with `start: false`, and is never started by a call with `wake: never`", () => {
    const asleep = createRecord({ ...spec, wake: "never" }, undefined, 1_000);
    expect(asleep.state.name).toBe("paused");
    expect(pendingEffect(asleep, 1_000)).toBeUndefined();
    expect(admitCall(asleep, true)).toMatchObject({ refuse: { code: "not_running" } });
    expect(stepSandbox(asleep, wake(1), 2_000)).toBe(asleep);
    expect(stepSandbox(asleep, startAs(1), 2_000).state.name).toBe("starting");
  });

  it("[S36] ends a run at its end, whatever runs, and each start sets a new end", () => {
    const ending = { ...created, spec: { ...spec, endAfterMs: 60_000, onEnd: "pause" as const } };
    const running = having(ending, up);
    expect(viewSandbox(running, emptyMetadata, newLease).endsAt).toBe(
      new Date(62_000).toISOString(),
    );
    expect(sandboxDeadline(running)).toEqual({ at: 62_000, why: "end of the run" });
    const busy = { type: "deadline", busy: true, save: false } as const;
    expect(stepSandbox(running, busy, 61_999)).toBe(running);
    expect(stepSandbox(running, busy, 62_000).state).toMatchObject({
      name: "pausing",
      reason: "ended",
    });
    const restarted = having(stepSandbox(running, busy, 62_000), paused, startAs(2), {
      ...up,
      startId: "start2",
    });
    expect(restarted.state).toMatchObject({ name: "running", endsAt: 4_000 + 60_000 });
    const destroying = { ...running, spec: { ...spec, endAfterMs: 60_000 } };
    expect(stepSandbox(destroying, busy, 62_000).state).toMatchObject({
      name: "destroying",
      reason: "ended",
    });
  });

  it("[S36] moves the end in both directions, or only later, and not while its files are copied", () => {
    const running = having({ ...created, spec: { ...spec, onEnd: "pause" as const } }, up);
    const set = (endsAt: number, onlyLater = false) =>
      stepSandbox(running, { type: "set_end", at: endsAt, onlyLater }, 3_000);
    expect(running.state).not.toHaveProperty("endsAt");
    expect(set(9_000, true).state).toMatchObject({ endsAt: 9_000 });
    const early = set(9_000);
    const move = (endsAt: number, onlyLater: boolean) =>
      stepSandbox(early, { type: "set_end", at: endsAt, onlyLater }, 4_000);
    expect(move(8_000, true)).toBe(early);
    expect(move(8_000, false).state).toMatchObject({ endsAt: 8_000 });
    expect(stepSandbox(early, { ...tick, frozen: true }, 9_000).state).toMatchObject({
      name: "running",
      endsAt: 9_000 + limits.startProbeMs,
    });
    expect(having(created, { type: "set_end", at: 1, onlyLater: false })).toBe(created);
  });

  it("[S16] does what `onIdle` says when it is idle, and only then", () => {
    const idleAt = (record: SandboxRecord) => sandboxDeadline(record)?.at ?? 0;
    const running = having(created, up);
    expect(idleAt(running)).toBe(2_000 + spec.idleTimeoutMs);
    expect(stepSandbox(running, tick, idleAt(running) - 1)).toBe(running);
    expect(stepSandbox(running, tick, idleAt(running)).state).toMatchObject({
      name: "pausing",
      reason: "idle",
    });
    const active = stepSandbox(running, { type: "active", at: 5_000 }, 5_000);
    expect(idleAt(active)).toBe(5_000 + spec.idleTimeoutMs);
    const busy = stepSandbox(
      running,
      { type: "deadline", busy: true, save: false },
      idleAt(running),
    );
    expect(idleAt(busy)).toBe(idleAt(running) + spec.idleTimeoutMs);
    const policy = (onIdle: "destroy" | "none") =>
      having(createRecord({ ...spec, onIdle }, start(1), 1_000), up);
    expect(stepSandbox(policy("destroy"), tick, idleAt(running)).state.name).toBe("destroying");
    expect(sandboxDeadline(policy("none"))).toBeUndefined();
  });

  it("[S17] is destroyed when its lifetime is over, whatever it does", () => {
    const short = createRecord({ ...spec, maxLifetimeMs: 5_000 }, start(1), 1_000);
    const tick = { type: "deadline", busy: true, save: false } as const;
    for (const record of [short, having(short, up), createRecord(short.spec, undefined, 1_000)]) {
      expect(stepSandbox(record, tick, 5_999).state.name).toBe(record.state.name);
      expect(sandboxDeadline(record)?.at).toBeLessThanOrEqual(6_000);
      expect(stepSandbox(record, tick, 6_000).state).toMatchObject({
        name: "destroying",
        reason: "expired",
      });
    }
  });

  it("[S9] a call on a starting sandbox waits, and one on a running sandbox gets its incarnation", () => {
    expect(admitCall(created, true)).toEqual({ wait: true });
    expect(admitCall(having(created, up), true)).toEqual({ go: life(1) });
    expect(admitCall(having(created, destroy), true)).toMatchObject({
      refuse: { code: "sandbox_destroyed" },
    });
  });

  it("[S13] the view of a sandbox contains neither its environment nor a secret nor an address", () => {
    for (const record of [created, having(created, up), having(created, up, lost)]) {
      const shown = JSON.stringify(viewSandbox(record, emptyMetadata, newLease));
      expect(shown).toContain(spec.id);
      expect(shown).not.toMatch(/canary|secret1|127\.0\.0\.1/);
    }
  });
});
