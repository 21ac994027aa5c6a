/** A build by itself: the order of its actions, its ends, and what comes too late. */
import { describe, expect, it } from "vitest";
import { type Build, isBuilding, stepBuild } from "../../../../src/core/template/build.ts";
import { readSteps } from "../../../../src/core/template/steps.ts";

const begun: Build = {
  ...{ id: "b1", name: "web", tag: "latest", actions: 2, done: 0 },
  ...{ startedAt: 0, until: 1000, sandbox: "s", hasSandbox: false, isCleared: false },
  state: { name: "starting" },
};

const exit = (action: number, exitCode: number | null, more: object = {}) =>
  ({ type: "exited", action, label: "run make", end: { exitCode, ...more } }) as const;

const buildAfter = (...events: Parameters<typeof stepBuild>[1][]) =>
  events.reduce((build, event) => stepBuild(build, event, 10), begun);

describe("a build", () => {
  it("[TP1] runs its actions in order, is saved once, and only then is ready", () => {
    const running = buildAfter({ type: "started" });
    expect(running).toMatchObject({ done: 0, hasSandbox: true, state: { name: "running" } });
    const first = stepBuild(running, { type: "process", action: 0, id: "p1" }, 11);
    const second = stepBuild(first, exit(0, 0), 12);
    expect(second).toMatchObject({ done: 1, state: { name: "running", cursor: 0 } });
    expect(second.state).not.toHaveProperty("process");
    const all = stepBuild(second, exit(1, 0), 13);
    expect(all).toMatchObject({ done: 2, state: { name: "saving" } });
    const saving = stepBuild(all, { type: "saving", handle: "t1" }, 14);
    expect(isBuilding(saving)).toBe(true);
    const ready = stepBuild(saving, { type: "saved", handle: "t1" }, 15);
    expect(ready.state).toEqual({ name: "ready", at: 15 });
    const cleared = stepBuild(ready, { type: "cleared" }, 16);
    expect(cleared).toMatchObject({ isCleared: true, state: { name: "ready" } });
  });

  it("[TP2] a step that fails ends it, and the reason names the step", () => {
    const reasonOf = (end: Parameters<typeof exit>) => {
      const { state } = buildAfter({ type: "started" }, exit(...end));
      return state.name === "failed" ? state.reason : state.name;
    };
    expect(reasonOf([0, 2])).toBe("Step 1 (run make) exited with 2.");
    expect(reasonOf([0, null, { signal: "SIGKILL" }])).toBe(
      "Step 1 (run make) was ended by SIGKILL.",
    );
    expect(reasonOf([0, 0, { timedOut: true }])).toBe("Step 1 (run make) took too long.");
  });

  it("[TP2] ends at its deadline, when it is cancelled, and never twice", () => {
    const late = stepBuild(begun, { type: "deadline" }, 1000);
    expect(late.state).toMatchObject({ name: "failed", reason: "The build took too long." });
    expect(stepBuild(begun, { type: "deadline" }, 999)).toBe(begun);
    const cancelled = buildAfter({ type: "started" }, { type: "cancelled" });
    for (const event of [
      exit(0, 0),
      { type: "started" },
      { type: "failed", reason: "late" },
      { type: "saved", handle: "t1" },
    ] as const)
      expect(stepBuild(cancelled, event, 20)).toBe(cancelled);
  });

  it("[TP2] what comes late or twice changes nothing", () => {
    const second = buildAfter({ type: "started" }, exit(0, 0));
    for (const event of [
      exit(0, 1),
      { type: "process", action: 0, id: "p1" },
      { type: "output", action: 0, cursor: 99 },
      { type: "saving", handle: "t1" },
      { type: "cleared" },
    ] as const)
      expect(stepBuild(second, event, 20)).toBe(second);
    const done = buildAfter({ type: "started" }, exit(0, 0), exit(1, 0));
    const other = stepBuild(done, { type: "saving", handle: "t2" }, 20);
    expect(stepBuild(other, { type: "saved", handle: "t1" }, 21)).toBe(other);
    const retried = stepBuild(other, { type: "not_saved", handle: "t2" }, 21);
    expect(retried.state).toEqual({ name: "saving" });
  });
});

describe("the steps", () => {
  it("[TP3] what a step sets holds for later steps and for the sandboxes", () => {
    const { actions, defaults } = readSteps(
      [
        { run: "first" },
        { env: { A: "1", B: "2" } },
        { user: "root" },
        { cwd: "app" },
        { env: { B: "3" } },
        { run: ["make", "all"] },
      ],
      { env: { B: "0" }, cwd: "/srv/" },
    );
    expect(actions).toEqual([
      { label: "run first", command: "first", env: { B: "0" }, cwd: "/srv/" },
      {
        ...{ label: "cwd /srv/app", argv: ["mkdir", "-p", "--", "/srv/app"], cwd: "/" },
        ...{ env: { A: "1", B: "2" }, user: "root" },
      },
      {
        ...{ label: "run make all", argv: ["make", "all"], cwd: "/srv/app" },
        ...{ env: { A: "1", B: "3" }, user: "root" },
      },
    ]);
    expect(defaults).toEqual({ env: { A: "1", B: "3" }, cwd: "/srv/app", user: "root" });
  });
});
