/**
 * Owns the moves of a sandbox: which event is allowed in which state, and what is to be done then.
 * Does not own doing it. `now`, start ids and secrets are arguments; anything late names its start or life.
 */
import { limits } from "../../protocol/limits.ts";
import type { FailReason } from "../../protocol/sandbox.ts";
import type { Life, SandboxRecord, SandboxSpec, SandboxState, Start } from "./record.ts";

export type SandboxEvent =
  | { type: "started"; startId: string; life: Life }
  | { type: "start_failed"; startId: string; reason: FailReason }
  | { type: "lost"; incarnation: string; reason: FailReason }
  | { type: "wake"; start: Start }
  | { type: "destroy"; reason: string }
  | { type: "destroyed" }
  | { type: "deadline" };

/** What the state wants done. A fresh wake asks again, so each must be harmless when repeated. */
export type Effect =
  | { type: "start"; start: Start }
  | { type: "destroy" }
  /** The tombstone's time is over. */
  | { type: "forget" };

export function createRecord(spec: SandboxSpec, start: Start, now: number): SandboxRecord {
  return { spec, state: starting(start, now), restarts: [] };
}

/** The same record where the event has no meaning (any more): late, repeated or overtaken. */
export function step(record: SandboxRecord, event: SandboxEvent, now: number): SandboxRecord {
  switch (event.type) {
    case "started":
      return startIs(record, event.startId)
        ? enter(record, { name: "running", since: now, life: event.life })
        : record;
    case "start_failed":
      return startIs(record, event.startId) ? failed(record, event.reason, false, now) : record;
    case "lost":
      return record.state.name === "running" && record.state.life.incarnation === event.incarnation
        ? failed(record, event.reason, true, now)
        : record;
    case "wake":
      return wake(record, event.start, now);
    case "destroy":
      return isOver(record.state)
        ? record
        : enter(record, {
            name: "destroying",
            since: now,
            tryAt: now + destroyPauseMs(1),
            tries: 1,
            reason: event.reason,
          });
    case "destroyed":
      return record.state.name === "destroying"
        ? enter(record, { name: "destroyed", since: now, reason: record.state.reason })
        : record;
    case "deadline":
      return deadline(record, now);
  }
}

/** What is to be done in this state, however the object came to be in it. */
export function pending(record: SandboxRecord, now: number): Effect | undefined {
  const { state } = record;
  switch (state.name) {
    case "starting":
      return { type: "start", start: state.start };
    case "destroying":
      return { type: "destroy" };
    case "destroyed":
      return now >= state.since + limits.tombstoneMs ? { type: "forget" } : undefined;
    case "running":
    case "failed":
      return undefined;
  }
}

/** The one moment at which the state must be looked at again, and why. */
export function nextDeadline(record: SandboxRecord): { at: number; why: string } | undefined {
  const { state } = record;
  switch (state.name) {
    case "starting":
      return state.lookAt < state.until
        ? { at: state.lookAt, why: "is the start still under way" }
        : { at: state.until, why: "the start must have come up" };
    case "destroying":
      return { at: state.tryAt, why: "destroy again" };
    case "destroyed":
      return { at: state.since + limits.tombstoneMs, why: "the tombstone ends" };
    case "running":
    case "failed":
      return undefined;
  }
}

export function isOver(state: SandboxState): boolean {
  return state.name === "destroying" || state.name === "destroyed";
}

function deadline(record: SandboxRecord, now: number): SandboxRecord {
  const { state } = record;
  if (state.name === "starting" && now >= state.until) {
    return failed(record, "start_timed_out", false, now);
  }
  if (state.name === "starting" && now >= state.lookAt) {
    return { ...record, state: { ...state, lookAt: now + limits.startLookMs } };
  }
  if (state.name === "destroying" && now >= state.tryAt) {
    const tries = state.tries + 1;
    return { ...record, state: { ...state, tries, tryAt: now + destroyPauseMs(tries) } };
  }
  return record;
}

/** 1 s, 2 s, 4 s … 64 s: an engine that is away is asked until it confirms. */
function destroyPauseMs(tries: number): number {
  return 1000 * 2 ** Math.min(tries - 1, 6);
}

function wake(record: SandboxRecord, start: Start, now: number): SandboxRecord {
  const { state } = record;
  if (state.name !== "failed" || !state.restartable) return record;
  const restarts = record.restarts.filter((at) => at > now - limits.restartsWindowMs);
  if (restarts.length >= limits.restartsMax) {
    return failed(record, "restarted_too_often", false, now);
  }
  return { ...record, restarts: [...restarts, now], state: starting(start, now) };
}

function failed(
  record: SandboxRecord,
  reason: FailReason,
  restartable: boolean,
  now: number,
): SandboxRecord {
  return enter(record, { name: "failed", since: now, reason, restartable });
}

function starting(start: Start, now: number): SandboxState {
  return {
    name: "starting",
    since: now,
    until: now + limits.startTimeoutMs,
    lookAt: now + limits.startLookMs,
    start,
  };
}

function startIs(record: SandboxRecord, startId: string): boolean {
  return record.state.name === "starting" && record.state.start.startId === startId;
}

function enter(record: SandboxRecord, state: SandboxState): SandboxRecord {
  return { ...record, state };
}
