/**
 * Owns the moves of a sandbox: which event is allowed in which state, and what it becomes then.
 * Does not own what a state wants done (pending.ts). `now`, start ids and secrets are arguments; anything that
 * can come late names its start or its life.
 */
import { limits } from "../../protocol/limits.ts";
import type { FailReason } from "../../protocol/sandbox.ts";
import type { Life, SandboxRecord, SandboxSpec, SandboxState, Start } from "./record.ts";

export type SandboxEvent =
  | { type: "started"; startId: string; life: Life }
  /** `passes`: nothing was wrong with the sandbox; later it may come up. */
  | { type: "start_failed"; startId: string; reason: FailReason; passes?: true }
  | { type: "lost"; incarnation: string; reason: FailReason }
  /** A call that needs a container came while there is none. */
  | { type: "wake"; start: Start }
  /** Somebody asks for a start, whatever it failed of. */
  | { type: "start"; start: Start }
  /** `save`: the files do not outlive their container, and are wanted. */
  | { type: "pause"; reason: string; save: boolean }
  /** Of a pause that ends this life: what comes late of an earlier one is nothing to the next. */
  | { type: "saved"; incarnation: string; snapshot: string }
  /** They could not be saved. */
  | { type: "not_saved"; incarnation: string }
  | { type: "paused"; incarnation: string }
  /** A start from a saved tree, in place of whatever runs or is kept. */
  | { type: "restore"; start: Start }
  /** Work was noted at this time. */
  | { type: "active"; at: number }
  | { type: "destroy"; reason: string }
  | { type: "destroyed" }
  /** `busy`: something is running, attached or leased, so it is not idle. */
  | { type: "deadline"; busy: boolean; save: boolean };

/** Without a start it is paused at once: no container until one is used. */
export function createRecord(
  spec: SandboxSpec,
  start: Start | undefined,
  now: number,
): SandboxRecord {
  const state: SandboxState =
    start === undefined ? { name: "paused", since: now, reason: "created" } : starting(start, now);
  return { spec, state, restarts: [], outOfMemory: [] };
}

/** The same record where the event has no meaning (any more): late, repeated or overtaken. */
export function step(record: SandboxRecord, event: SandboxEvent, now: number): SandboxRecord {
  const { state } = record;
  switch (event.type) {
    case "started":
      return startIs(state, event.startId)
        ? enter(record, { name: "running", since: now, activeAt: now, life: event.life })
        : record;
    case "start_failed":
      return startIs(state, event.startId) ? startFailed(record, event, now) : record;
    case "lost":
      return state.name === "running" && state.life.incarnation === event.incarnation
        ? lost(record, event.reason, now)
        : record;
    case "wake":
      return wake(record, event.start, now);
    case "start":
      return start(record, event.start, now);
    case "pause":
      return pause(record, event, now);
    case "saved":
      return pauses(state, event.incarnation) && state.saved === undefined
        ? enter(record, { ...state, saved: event.snapshot })
        : record;
    case "not_saved":
      return pauses(state, event.incarnation) && state.saved === undefined
        ? enter(record, { name: "running", since: now, activeAt: now, life: state.life })
        : record;
    case "paused":
      return pauses(state, event.incarnation) ? paused(record, state, now) : record;
    case "restore":
      return state.name === "running" || state.name === "paused" || state.name === "failed"
        ? enter(record, starting(event.start, now))
        : record;
    case "active":
      return state.name === "running" && event.at > state.activeAt
        ? enter(record, { ...state, activeAt: event.at })
        : record;
    case "destroy":
      return isOver(state) ? record : destroying(record, event.reason, now);
    case "destroyed":
      return state.name === "destroying"
        ? enter(record, { name: "destroyed", since: now, reason: state.reason })
        : record;
    case "deadline":
      return deadline(record, event, now);
  }
}

export function isOver(state: SandboxState): boolean {
  return state.name === "destroying" || state.name === "destroyed";
}

/** 1 s, 2 s, 4 s … 64 s: an engine that is away is asked until it confirms. */
function destroyPauseMs(tries: number): number {
  return 1000 * 2 ** Math.min(tries - 1, 6);
}

type Deadline = { busy: boolean; save: boolean };

function deadline(record: SandboxRecord, { busy, save }: Deadline, now: number): SandboxRecord {
  const { spec, state } = record;
  const { maxLifetimeMs } = spec;
  const expired = maxLifetimeMs !== undefined && now >= spec.createdAt + maxLifetimeMs;
  if (expired && !isOver(state)) return destroying(record, "expired", now);
  switch (state.name) {
    case "starting":
      if (now >= state.until) return failed(record, "start_timed_out", false, now);
      return now >= state.lookAt
        ? enter(record, { ...state, lookAt: now + limits.startLookMs })
        : record;
    case "running":
      return now >= state.activeAt + spec.idleTimeoutMs
        ? idle(record, { busy, save }, now)
        : record;
    case "pausing":
      if (now >= state.until) return failed(record, "pause_timed_out", true, now);
      return now >= state.lookAt
        ? enter(record, { ...state, lookAt: now + limits.startLookMs })
        : record;
    case "destroying": {
      if (now < state.tryAt) return record;
      const tries = state.tries + 1;
      return enter(record, { ...state, tries, tryAt: now + destroyPauseMs(tries) });
    }
    default:
      return record;
  }
}

function idle(record: SandboxRecord, { busy, save }: Deadline, now: number): SandboxRecord {
  const { spec, state } = record;
  if (state.name !== "running" || spec.onIdle === "none") return record;
  if (busy) return enter(record, { ...state, activeAt: now });
  return spec.onIdle === "pause"
    ? pause(record, { reason: "idle", save }, now)
    : destroying(record, "idle", now);
}

/** Through no fault of its own it may be started again; what it needs more memory for, it would need again. */
function lost(record: SandboxRecord, reason: FailReason, now: number): SandboxRecord {
  if (reason !== "out_of_memory") return failed(record, reason, true, now);
  const outOfMemory = [...record.outOfMemory.filter(isRecent(now)), now];
  const isRestartable = outOfMemory.length < limits.outOfMemoryMax;
  return failed({ ...record, outOfMemory }, reason, isRestartable, now);
}

function wake(record: SandboxRecord, attempt: Start, now: number): SandboxRecord {
  const { state, spec } = record;
  if (state.name === "paused" || state.name === "pausing") {
    return spec.wake === "never" ? record : start(record, attempt, now);
  }
  if (state.name !== "failed" || !state.restartable) return record;
  const restarts = record.restarts.filter(isRecent(now));
  if (restarts.length >= limits.restartsMax) {
    return failed(record, "restarted_too_often", false, now);
  }
  return { ...record, restarts: [...restarts, now], state: starting(attempt, now) };
}

function start(record: SandboxRecord, attempt: Start, now: number): SandboxRecord {
  const { state } = record;
  if (state.name === "paused" || state.name === "failed") {
    const saved = state.name === "paused" ? state.saved : undefined;
    return enter(record, starting({ snapshot: saved, ...attempt }, now));
  }
  if (state.name === "pausing" && state.next === undefined) {
    return enter(record, { ...state, next: attempt });
  }
  return record;
}

function pause(
  record: SandboxRecord,
  { reason, save }: { reason: string; save: boolean },
  now: number,
): SandboxRecord {
  const { state } = record;
  if (state.name !== "running") return record;
  return enter(record, {
    name: "pausing",
    since: now,
    until: now + (save ? limits.snapshotTimeoutMs : limits.pauseTimeoutMs),
    lookAt: now + limits.startLookMs,
    reason,
    life: state.life,
    save,
  });
}

function paused(record: SandboxRecord, state: Pausing, now: number): SandboxRecord {
  const { next, reason, saved } = state;
  // Who asked for it meanwhile could not know what the pause would save.
  if (next !== undefined) {
    return enter(record, starting({ snapshot: saved, ...next }, now));
  }
  return enter(record, { name: "paused", since: now, reason, saved });
}

function destroying(record: SandboxRecord, reason: string, now: number): SandboxRecord {
  return enter(record, {
    name: "destroying",
    since: now,
    tryAt: now + destroyPauseMs(1),
    tries: 1,
    reason,
  });
}

/** The files that it had are still there: where nothing is wrong with these, it may go on with them. */
function startFailed(
  record: SandboxRecord,
  { reason, passes }: Extract<SandboxEvent, { type: "start_failed" }>,
  now: number,
): SandboxRecord {
  const restartable = passes === true || keepsItsFiles(reason);
  const mark = passes === true ? { passes } : {};
  return enter(record, { name: "failed", since: now, reason, restartable, ...mark });
}

function failed(
  record: SandboxRecord,
  reason: FailReason,
  restartable: boolean,
  now: number,
): SandboxRecord {
  return enter(record, { name: "failed", since: now, reason, restartable });
}

function starting(attempt: Start, now: number): SandboxState {
  return {
    name: "starting",
    since: now,
    until:
      now + (attempt.snapshot === undefined ? limits.startTimeoutMs : limits.snapshotTimeoutMs),
    lookAt: now + limits.startLookMs,
    start: attempt,
  };
}

function isRecent(now: number): (at: number) => boolean {
  return (at) => at > now - limits.restartsWindowMs;
}

/** Nothing was wrong with the sandbox: the saved tree was not there, or there was no room for it. */
function keepsItsFiles(reason: FailReason): boolean {
  return reason === "snapshot_missing" || reason === "disk_full";
}

type Pausing = Extract<SandboxState, { name: "pausing" }>;

function pauses(state: SandboxState, incarnation: string): state is Pausing {
  return state.name === "pausing" && state.life.incarnation === incarnation;
}

function startIs(state: SandboxState, startId: string): boolean {
  return state.name === "starting" && state.start.startId === startId;
}

function enter(record: SandboxRecord, state: SandboxState): SandboxRecord {
  return { ...record, state };
}
