/**
 * Steps a sandbox: which event is allowed in which state, and what the state becomes. Late events name their start or their
 * incarnation and change nothing. See pending.ts for the effect that each state requires.
 */
import { limits } from "../../protocol/limits.ts";
import type { FailReason } from "../../protocol/sandbox.ts";
import { backOffMs } from "../deadline.ts";
import {
  type Incarnation,
  type SandboxRecord,
  type SandboxSpec,
  type SandboxState,
  type Start,
  serverEnded,
} from "./record.ts";

export type SandboxEvent =
  | { type: "started"; startId: string; life: Incarnation }
  /** `passes`: the reason is temporary, and a later start may succeed. */
  | {
      type: "start_failed";
      startId: string;
      reason: FailReason;
      passes?: true;
      message?: string | undefined;
    }
  | { type: "lost"; incarnation: string; reason: FailReason; message?: string | undefined }
  /** The server or the engine has ended, and the container with it. The files are kept. */
  | { type: "server_ended"; incarnation: string }
  /** A call needs a container, but none is running. */
  | { type: "wake"; start: Start }
  /** An explicit start, whatever the last failure was. */
  | { type: "start"; start: Start }
  /** `save`: the files would be lost with the container and must be saved. */
  | { type: "pause"; reason: string; save: boolean }
  /** The files of this incarnation are saved. */
  | { type: "saved"; incarnation: string; snapshot: string }
  /** The files could not be saved. */
  | { type: "not_saved"; incarnation: string }
  | { type: "paused"; incarnation: string }
  /** A start from a checkpoint, which replaces the running container and the present files. */
  | { type: "restore"; start: Start }
  /** The run ends at this time; `onlyLater`: unless it ends later anyway. */
  | { type: "set_end"; at: number; onlyLater: boolean }
  /** There was activity at this time. */
  | { type: "active"; at: number }
  | { type: "destroy"; reason: string }
  | { type: "destroyed" }
  /**
   * `busy`: work is running, somebody is attached or a lease is held, so the sandbox is not idle. `frozen`: its files are
   * being copied, so the container must not stop now.
   */
  | { type: "deadline"; busy: boolean; save: boolean; frozen?: boolean };

/** Without a start the sandbox is created paused, until a call needs it. */
export function createRecord(
  spec: SandboxSpec,
  start: Start | undefined,
  now: number,
): SandboxRecord {
  const state: SandboxState =
    start === undefined
      ? { name: "paused", since: now, reason: "created" }
      : startingState(start, now);
  return { spec, state, restarts: [], outOfMemory: [] };
}

/** Returns the same record if the event does not apply (any more): it is late, repeated or overtaken. */
export function stepSandbox(
  record: SandboxRecord,
  event: SandboxEvent,
  now: number,
): SandboxRecord {
  const { state } = record;
  switch (event.type) {
    case "started":
      return isStartingWith(state, event.startId) ? runSandbox(record, event.life, now) : record;
    case "start_failed":
      return isStartingWith(state, event.startId) ? failStart(record, event, now) : record;
    case "lost":
      return state.name === "running" && state.life.incarnation === event.incarnation
        ? loseContainer(record, event, now)
        : record;
    case "server_ended":
      return state.name === "running" && state.life.incarnation === event.incarnation
        ? enterState(record, { name: "paused", since: now, reason: serverEnded })
        : record;
    case "wake":
      return wakeSandbox(record, event.start, now);
    case "start":
      return startByHand(record, event.start, now);
    case "pause":
      return pauseSandbox(record, event, now);
    case "saved":
      return isPausingOf(state, event.incarnation) && state.saved === undefined
        ? enterState(record, { ...state, saved: event.snapshot })
        : record;
    case "not_saved":
      return isPausingOf(state, event.incarnation) && state.saved === undefined
        ? runSandbox(record, state.life, now)
        : record;
    case "paused":
      return isPausingOf(state, event.incarnation) ? completePause(record, state, now) : record;
    case "restore":
      return state.name === "running" || state.name === "paused" || state.name === "failed"
        ? { ...enterState(record, startingState(event.start, now)), restoredAt: now }
        : record;
    case "set_end":
      return state.name === "running" && !(event.onlyLater && (state.endsAt ?? 0) >= event.at)
        ? enterState(record, { ...state, endsAt: event.at })
        : record;
    case "active":
      return state.name === "running" && event.at > state.activeAt
        ? enterState(record, { ...state, activeAt: event.at })
        : record;
    case "destroy":
      return isEnding(state) ? record : destroySandbox(record, event.reason, now);
    case "destroyed":
      return state.name === "destroying"
        ? enterState(record, { name: "destroyed", since: now, reason: state.reason })
        : record;
    case "deadline":
      return applyDeadline(record, event, now);
  }
}

export function isEnding(state: SandboxState): boolean {
  return state.name === "destroying" || state.name === "destroyed";
}

/** 1 s, 2 s, 4 s … 64 s, until the engine confirms. */
function destroyDelayMs(tries: number): number {
  return backOffMs(1_000, tries - 1, 64_000);
}

function runSandbox(record: SandboxRecord, life: Incarnation, now: number): SandboxRecord {
  const { endAfterMs } = record.spec;
  const end = endAfterMs === undefined ? {} : { endsAt: now + endAfterMs };
  return enterState(record, { name: "running", since: now, activeAt: now, life, ...end });
}

type DeadlineFacts = { busy: boolean; save: boolean; frozen?: boolean };

function applyDeadline(
  record: SandboxRecord,
  { busy, save, frozen = false }: DeadlineFacts,
  now: number,
): SandboxRecord {
  const { spec, state } = record;
  const { maxLifetimeMs } = spec;
  const expired = maxLifetimeMs !== undefined && now >= spec.createdAt + maxLifetimeMs;
  if (expired && !isEnding(state)) return destroySandbox(record, "expired", now);
  switch (state.name) {
    case "starting":
      if (now >= state.until) return failSandbox(record, "start_timed_out", false, now);
      return now >= state.lookAt
        ? enterState(record, { ...state, lookAt: now + limits.startProbeMs })
        : record;
    case "running":
      if (state.endsAt !== undefined && now >= state.endsAt) {
        return endRun(record, { save, frozen }, now);
      }
      return now >= state.activeAt + spec.idleTimeoutMs
        ? applyIdleTimeout(record, { busy, save }, now)
        : record;
    case "pausing":
      if (now >= state.until) return failSandbox(record, "pause_timed_out", true, now);
      return now >= state.lookAt
        ? enterState(record, { ...state, lookAt: now + limits.startProbeMs })
        : record;
    case "destroying": {
      if (now < state.tryAt) return record;
      const tries = state.tries + 1;
      return enterState(record, { ...state, tries, tryAt: now + destroyDelayMs(tries) });
    }
    case "paused": {
      const { destroyPausedAfterMs } = spec;
      return destroyPausedAfterMs !== undefined && now >= state.since + destroyPausedAfterMs
        ? destroySandbox(record, "paused_too_long", now)
        : record;
    }
    default:
      return record;
  }
}

/** Unlike an idle timeout it does not ask whether anything runs. */
function endRun(
  record: SandboxRecord,
  { save, frozen }: { save: boolean; frozen: boolean },
  now: number,
): SandboxRecord {
  if (record.spec.onEnd !== "pause") return destroySandbox(record, "ended", now);
  const { state } = record;
  if (!frozen || state.name !== "running")
    return pauseSandbox(record, { reason: "ended", save }, now);
  return enterState(record, { ...state, endsAt: now + limits.startProbeMs });
}

function applyIdleTimeout(
  record: SandboxRecord,
  { busy, save }: DeadlineFacts,
  now: number,
): SandboxRecord {
  const { spec, state } = record;
  if (state.name !== "running" || spec.onIdle === "none") return record;
  if (busy) return enterState(record, { ...state, activeAt: now });
  return spec.onIdle === "pause"
    ? pauseSandbox(record, { reason: "idle", save }, now)
    : destroySandbox(record, "idle", now);
}

/** A lost container may be restarted; after repeated lack of memory it may not, because it would run out again. */
function loseContainer(
  record: SandboxRecord,
  { reason, message }: Extract<SandboxEvent, { type: "lost" }>,
  now: number,
): SandboxRecord {
  if (reason !== "out_of_memory") return failSandbox(record, reason, true, now, message);
  const outOfMemory = [...record.outOfMemory.filter(isRecent(now)), now];
  const isRestartable = outOfMemory.length < limits.outOfMemoryMax;
  return failSandbox({ ...record, outOfMemory }, reason, isRestartable, now);
}

function wakeSandbox(record: SandboxRecord, attempt: Start, now: number): SandboxRecord {
  const { state, spec } = record;
  if (state.name === "paused" || state.name === "pausing") {
    return mayWake(spec, state) ? startSandbox(record, attempt, now) : record;
  }
  if (state.name !== "failed" || !state.restartable) return record;
  const restarts = record.restarts.filter(isRecent(now));
  if (restarts.length >= limits.restartsMax) {
    return failSandbox(record, "restarted_too_often", false, now);
  }
  return { ...record, restarts: [...restarts, now], state: startingState(attempt, now) };
}

/** Nobody has asked for the pause of a sandbox whose server ended, so that a call may always end it. */
export function mayWake({ wake }: SandboxSpec, state: SandboxState): boolean {
  return wake === "auto" || (state.name === "paused" && state.reason === serverEnded);
}

/** A start by hand shows that somebody knows of the losses: they do not count any more, lack of memory does. */
function startByHand(record: SandboxRecord, attempt: Start, now: number): SandboxRecord {
  const started = startSandbox(record, attempt, now);
  return started === record ? record : { ...started, restarts: [] };
}

function startSandbox(record: SandboxRecord, attempt: Start, now: number): SandboxRecord {
  const { state } = record;
  if (state.name === "paused" || state.name === "failed") {
    const saved = state.name === "paused" ? state.saved : undefined;
    return enterState(record, startingState({ snapshot: saved, ...attempt }, now));
  }
  if (state.name === "pausing" && state.next === undefined) {
    return enterState(record, { ...state, next: attempt });
  }
  return record;
}

function pauseSandbox(
  record: SandboxRecord,
  { reason, save }: { reason: string; save: boolean },
  now: number,
): SandboxRecord {
  const { state } = record;
  if (state.name !== "running") return record;
  return enterState(record, {
    name: "pausing",
    since: now,
    until: now + (save ? limits.snapshotTimeoutMs : limits.pauseTimeoutMs),
    lookAt: now + limits.startProbeMs,
    reason,
    life: state.life,
    save,
  });
}

function completePause(record: SandboxRecord, state: Pausing, now: number): SandboxRecord {
  const { next, reason, saved } = state;
  // The start was requested before the pause had saved the files, so their checkpoint is added here.
  if (next !== undefined) {
    return enterState(record, startingState({ snapshot: saved, ...next }, now));
  }
  return enterState(record, { name: "paused", since: now, reason, saved });
}

function destroySandbox(record: SandboxRecord, reason: string, now: number): SandboxRecord {
  return enterState(record, {
    name: "destroying",
    since: now,
    tryAt: now + destroyDelayMs(1),
    tries: 1,
    reason,
  });
}

/** The files are still there. The sandbox may be restarted with them unless they are the cause of the failure. */
function failStart(
  record: SandboxRecord,
  { reason, passes, message }: Extract<SandboxEvent, { type: "start_failed" }>,
  now: number,
): SandboxRecord {
  const restartable = passes === true || isRestartableFailure(reason);
  const details = {
    ...(passes === true ? { passes } : {}),
    ...(message === undefined ? {} : { message }),
  };
  return enterState(record, { name: "failed", since: now, reason, restartable, ...details });
}

function failSandbox(
  record: SandboxRecord,
  reason: FailReason,
  restartable: boolean,
  now: number,
  message?: string,
): SandboxRecord {
  const details = message === undefined ? {} : { message };
  return enterState(record, { name: "failed", since: now, reason, restartable, ...details });
}

function startingState(attempt: Start, now: number): SandboxState {
  return {
    name: "starting",
    since: now,
    until:
      now + (attempt.snapshot === undefined ? limits.startTimeoutMs : limits.snapshotTimeoutMs),
    lookAt: now + limits.startProbeMs,
    start: attempt,
  };
}

function isRecent(now: number): (ms: number) => boolean {
  return (ms) => ms > now - limits.restartsWindowMs;
}

/** Nothing was wrong with the sandbox: the checkpoint was missing or the disk was full. */
function isRestartableFailure(reason: FailReason): boolean {
  return reason === "snapshot_missing" || reason === "disk_full";
}

type Pausing = Extract<SandboxState, { name: "pausing" }>;

function isPausingOf(state: SandboxState, incarnation: string): state is Pausing {
  return state.name === "pausing" && state.life.incarnation === incarnation;
}

function isStartingWith(state: SandboxState, startId: string): boolean {
  return state.name === "starting" && state.start.startId === startId;
}

function enterState(record: SandboxRecord, state: SandboxState): SandboxRecord {
  return { ...record, state };
}
