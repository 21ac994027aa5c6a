import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { type Screen, screenSchema } from "../../../src/protocol/terminal.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { childrenOf } from "../proc.ts";
import { Viewer } from "../terminals/terminal-socket.ts";
import { endTerminal, openTerminal, script } from "../terminals/terminals.ts";

describe.each(kinds)("the screen of a program, trees by %s", (tree) => {
  let workers: number[] = [];
  // Hooks after all tests run in reverse order: this one when the agent has stopped.
  afterAll(() => {
    expect(workers).not.toEqual([]);
    expect(workers.filter((pid) => argumentsOf(pid) !== "")).toEqual([]);
  });
  const agent = Agent.forBlock({ tree });

  const open = (id: string, command: string, size = { cols: 40, rows: 10 }) =>
    openTerminal(agent, { id, ...size, env: { TERM: "xterm-256color" }, argv: script(command) });
  const readScreen = async (id: string): Promise<Screen> => {
    const response = await agent.request(`/v1/terminals/${id}/screen`);
    const text = await response.text();
    expect(response.status, text).toBe(200);
    return screenSchema.parse(JSON.parse(text));
  };
  /** Reads the screen until the condition holds. */
  const screenWhere = async (id: string, holds: (screen: Screen) => boolean): Promise<Screen> => {
    let screen = await readScreen(id);
    await until("the screen shows it", async () => {
      screen = await readScreen(id);
      return holds(screen);
    });
    return screen;
  };

  it("[G3] is returned as text: a pager's page, its end, and the lines below it after it was left", async () => {
    const id = "pager";
    await open(id, "seq 1 100 > numbers; echo before; less numbers; echo after; read");
    const page = await screenWhere(id, ({ text }) => text.includes("\n9"));
    expect(page.text.split("\n").slice(0, 9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map(String));
    expect(page).toMatchObject({ cols: 40, rows: 10, alternate: true });
    const viewer = await Viewer.open(agent, id);
    viewer.type("G");
    const end = await screenWhere(id, ({ text }) => text.includes("100"));
    expect(end.text).toContain("92\n93");
    viewer.type("q");
    const after = await screenWhere(id, ({ text }) => text.includes("after"));
    expect(after).toMatchObject({ alternate: false, cursor: { x: 0, y: 2 } });
    expect(after.text.trimEnd()).toBe("before\nafter");
    await viewer.close();
    expect(await endTerminal(agent, id)).toBe(200);
  });

  it("[G4] follows the size of the terminal", async () => {
    const id = "sized";
    await open(id, "trap 'stty size' WINCH; stty size; while :; do read -t 60 _; done");
    await screenWhere(id, ({ text }) => text.startsWith("10 40"));
    const body = JSON.stringify({ cols: 60, rows: 20 });
    const resized = await agent.request(`/v1/terminals/${id}`, { method: "PATCH", body });
    expect(resized.status).toBe(200);
    const screen = await screenWhere(id, ({ text }) => text.includes("20 60"));
    expect(screen).toMatchObject({ cols: 60, rows: 20 });
    expect(await endTerminal(agent, id)).toBe(200);
  });

  it("[G5] is right after a flood of 50 MB", async () => {
    const id = "flood";
    await open(
      id,
      "head -c 50000000 /dev/zero | tr '\\0' 'y' | fold -w 79; echo; echo done; read",
      { cols: 80, rows: 24 },
    );
    const screen = await screenWhere(id, ({ text }) => text.includes("done"));
    expect(screen.offset).toBeGreaterThan(50_000_000);
    const lines = screen.text.split("\n");
    expect(lines.filter((line) => line === "y".repeat(79)).length).toBeGreaterThan(10);
    expect(lines.indexOf("done")).toBe(screen.cursor.y - 1);
    expect(await endTerminal(agent, id)).toBe(200);
  });

  it("[G6] is shown to a viewer that connects later, whose keys reach the program", async () => {
    const id = "late";
    await open(id, "seq 1 100 > numbers; less numbers");
    await screenWhere(id, ({ text }) => text.includes("\n9"));
    const viewer = await Viewer.open(agent, id, { framed: false });
    await until(
      "it is shown",
      () => viewer.text.includes("\x1b[?47h") && viewer.text.includes("9"),
    );
    viewer.type("q");
    await until("it has ended", () => viewer.closed !== undefined);
    expect(viewer.closed?.code).toBe(1000);
    expect(await endTerminal(agent, id)).toBe(404);
  });

  it("[G7] is rendered by one worker for all terminals, which is replaced when it dies", async () => {
    const id = "again";
    await open(id, "echo here; read");
    await screenWhere(id, ({ text }) => text.includes("here"));
    const descriptors = agent.descriptors();
    for (let death = 0; death < 5; death += 1) {
      const [worker, ...others] = workersOf(agent);
      expect(others).toEqual([]);
      process.kill(worker ?? 0, "SIGKILL");
      await until("it is gone", () => !workersOf(agent).includes(worker ?? 0));
      expect((await readScreen(id)).text.trimEnd()).toBe("here");
    }
    await until("its descriptors are closed", () => agent.descriptors() <= descriptors);
    workers = workersOf(agent);
    expect(workers).toHaveLength(1);
    expect(await endTerminal(agent, id)).toBe(200);
  });
});

function workersOf({ pid }: Agent): number[] {
  return descendants(pid).filter((child) => argumentsOf(child).endsWith("\0render\0"));
}

function descendants(pid: number): number[] {
  const children = childrenNow(pid);
  return [...children, ...children.flatMap(descendants)];
}

function childrenNow(pid: number): number[] {
  try {
    return childrenOf(pid);
  } catch {
    return [];
  }
}

function argumentsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
