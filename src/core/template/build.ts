/**
 * One build of a template: which of its actions is next, and how it ends. A build is one sandbox that runs actions in
 * order and is saved once; whatever goes wrong ends it as `failed`, and nothing of it becomes a template.
 */
import type { Deadline } from "../deadline.ts";

export type BuildState =
  /** Its sandbox is being created and started. */
  | { name: "starting" }
  /** Runs the next action. `process`: of this action; `cursor`: how far its output is in the log. */
  | { name: "running"; process?: string; cursor: number }
  /** All actions are done. `handle`: under which its tree is being saved. */
  | { name: "saving"; handle?: string }
  /** Its tree is the newest version of the template. */
  | { name: "ready"; at: number }
  | { name: "failed"; at: number; reason: string }
  | { name: "cancelled"; at: number };

export type Build = {
  id: string;
  name: string;
  tag: string;
  actions: number;
  /** How many of them are done. */
  done: number;
  startedAt: number;
  /** Then it has failed. */
  until: number;
  sandbox: string;
  /** The sandbox has certainly existed. */
  hasSandbox: boolean;
  /** The sandbox is gone. */
  isCleared: boolean;
  state: BuildState;
};

export type BuildEvent =
  | { type: "started" }
  | { type: "process"; action: number; id: string }
  | { type: "output"; action: number; cursor: number }
  | { type: "exited"; action: number; label: string; end: ProcessEnd }
  | { type: "saving"; handle: string }
  /** The tree was not saved; the next one has another handle, because a late save may still write this one. */
  | { type: "not_saved"; handle: string }
  | { type: "saved"; handle: string }
  | { type: "failed"; reason: string }
  | { type: "cancelled" }
  | { type: "deadline" }
  | { type: "cleared" };

export type ProcessEnd = {
  exitCode?: number | null | undefined;
  signal?: string | null | undefined;
  timedOut?: boolean | undefined;
};

export function isBuilding({ state }: Build): boolean {
  return state.name === "starting" || state.name === "running" || state.name === "saving";
}

/** Returns the same build if the event does not apply (any more): it is late, repeated or overtaken. */
export function stepBuild(build: Build, event: BuildEvent, now: number): Build {
  if (event.type === "cleared") {
    return isBuilding(build) || build.isCleared ? build : { ...build, isCleared: true };
  }
  if (!isBuilding(build)) return build;
  const { state } = build;
  const enter = (next: BuildState): Build => ({ ...build, state: next });
  switch (event.type) {
    case "started":
      return state.name === "starting"
        ? { ...build, hasSandbox: true, state: nextState(build, build.done) }
        : build;
    case "process":
      return isAt(build, event.action) && state.name === "running" && state.process === undefined
        ? enter({ ...state, process: event.id })
        : build;
    case "output":
      return isAt(build, event.action) && state.name === "running" && event.cursor > state.cursor
        ? enter({ ...state, cursor: event.cursor })
        : build;
    case "exited": {
      if (!isAt(build, event.action)) return build;
      const problem = problemOf(event.end);
      const done = event.action + 1;
      if (problem === undefined) return { ...build, done, state: nextState(build, done) };
      const reason = `Step ${done} (${event.label}) ${problem}.`;
      return enter({ name: "failed", at: now, reason });
    }
    case "saving":
      return state.name === "saving" && state.handle === undefined
        ? enter({ name: "saving", handle: event.handle })
        : build;
    case "not_saved":
      return isSaving(state, event.handle) ? enter({ name: "saving" }) : build;
    case "saved":
      return isSaving(state, event.handle) ? enter({ name: "ready", at: now }) : build;
    case "failed":
      return enter({ name: "failed", at: now, reason: event.reason });
    case "cancelled":
      return enter({ name: "cancelled", at: now });
    case "deadline":
      return now >= build.until
        ? enter({ name: "failed", at: now, reason: "The build took too long." })
        : build;
  }
}

/** When the build must be checked, at the latest. */
export function buildDeadline(build: Build): Deadline | undefined {
  return isBuilding(build) ? { at: build.until, why: "the longest build" } : undefined;
}

function nextState({ actions }: Build, done: number): BuildState {
  return done < actions ? { name: "running", cursor: 0 } : { name: "saving" };
}

function isAt({ state, done }: Build, action: number): boolean {
  return state.name === "running" && done === action;
}

function isSaving(state: BuildState, handle: string): boolean {
  return state.name === "saving" && state.handle === handle;
}

function problemOf({ exitCode, signal, timedOut }: ProcessEnd): string | undefined {
  if (timedOut === true) return "took too long";
  if (exitCode === 0) return undefined;
  return exitCode === null || exitCode === undefined
    ? `was ended by ${signal ?? "a signal"}`
    : `exited with ${exitCode}`;
}
