/** Says which effect the state of a sandbox requires, and when the state must be checked again. */
import { limits } from "../../protocol/limits.ts";
import { type Deadline, earliest } from "../deadline.ts";
import type { SandboxRecord, Start } from "./record.ts";

/** Each effect is harmless when repeated. */
export type Effect =
  | { type: "start"; start: Start }
  /** Save the files, which would be lost with the container. */
  | { type: "save"; incarnation: string }
  /** Stop the container. */
  | { type: "stop"; incarnation: string }
  | { type: "destroy" }
  /** Delete all rows: the retention of the tombstone is over. */
  | { type: "forget" };

export function pendingEffect(record: SandboxRecord, now: number): Effect | undefined {
  const { state } = record;
  switch (state.name) {
    case "starting":
      return { type: "start", start: state.start };
    case "pausing":
      return {
        type: state.save && state.saved === undefined ? "save" : "stop",
        incarnation: state.life.incarnation,
      };
    case "destroying":
      return { type: "destroy" };
    case "destroyed":
      return now >= state.since + limits.tombstoneMs ? { type: "forget" } : undefined;
    case "running":
    case "paused":
    case "failed":
      return undefined;
  }
}

export function sandboxDeadline(record: SandboxRecord): Deadline | undefined {
  return earliest([stateDeadline(record), endDeadline(record), lifetimeDeadline(record)]);
}

function endDeadline({ state }: SandboxRecord): Deadline | undefined {
  if (state.name !== "running" || state.endsAt === undefined) return undefined;
  return { at: state.endsAt, why: "end of the run" };
}

function stateDeadline({ spec, state }: SandboxRecord): Deadline | undefined {
  switch (state.name) {
    case "starting":
      return state.lookAt < state.until
        ? { at: state.lookAt, why: "start progress check" }
        : { at: state.until, why: "start timeout" };
    case "running":
      return spec.onIdle === "none"
        ? undefined
        : { at: state.activeAt + spec.idleTimeoutMs, why: "idle timeout" };
    case "pausing":
      return state.lookAt < state.until
        ? { at: state.lookAt, why: "pause progress check" }
        : { at: state.until, why: "pause timeout" };
    case "destroying":
      return { at: state.tryAt, why: "destroy retry" };
    case "destroyed":
      return { at: state.since + limits.tombstoneMs, why: "tombstone expiry" };
    case "paused":
      return spec.destroyPausedAfterMs === undefined
        ? undefined
        : { at: state.since + spec.destroyPausedAfterMs, why: "paused too long" };
    case "failed":
      return undefined;
  }
}

function lifetimeDeadline({ spec, state }: SandboxRecord): Deadline | undefined {
  const { maxLifetimeMs } = spec;
  if (maxLifetimeMs === undefined) return undefined;
  if (state.name === "destroying" || state.name === "destroyed") return undefined;
  return { at: spec.createdAt + maxLifetimeMs, why: "lifetime limit" };
}
