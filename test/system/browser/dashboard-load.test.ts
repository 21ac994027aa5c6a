/** What the dashboard bears: a flood of output, and a tab that slept. BERTH_FLOOD_MB=100 makes the flood large. */
import { describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { useSharedServer } from "../shared-server.ts";
import { Browser, browserProgram } from "./browser.ts";
import { DashboardUser } from "./dashboard-user.ts";

const floodBytes = Number(process.env.BERTH_FLOOD_MB ?? 8) * 1e6;
/** The page may hold this much, however long the flood was: most of it are the kept lines. */
const memoryMax = 96e6;

const lineBytes = 100;
const lines = Math.round(floodBytes / lineBytes);
/** Numbered lines of one length. */
const flood = `awk 'BEGIN { for (i = 1; i <= ${lines}; i++) printf "%09d%0${lineBytes - 10}d\\n", i, 0 }'`;

/** The numbers of the lines that are shown; each row of a line that was wrapped counts once. */
async function shownNumbers(user: DashboardUser): Promise<number[]> {
  const rows = (await user.screen()).split("\n");
  return rows.filter((row) => /^\d{9}0{40}/.test(row)).map((row) => Number(row.slice(0, 9)));
}

function expectInARow(numbers: number[]): void {
  expect(numbers.length).toBeGreaterThan(3);
  expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
}

async function expectNothingLost(user: DashboardUser): Promise<void> {
  const last = await shownNumbers(user);
  expectInARow(last);
  expect(last.at(-1)).toBe(lines);
  await user.page.locator(".xterm-screen").hover();
  for (let turn = 0; turn < 5; turn += 1) {
    await user.page.mouse.wheel(0, -4000);
    await until("older lines are shown", async () => (await shownNumbers(user))[0] !== last[0]);
    expectInARow(await shownNumbers(user));
  }
}

describe.skipIf(browserProgram === undefined)("the dashboard under load", () => {
  it("[DB15] a flood passes through a log and a terminal in bounded memory, nothing lost or doubled", {
    timeout: 550_000,
  }, async () => {
    await using server = await useSharedServer();
    await using browser = await Browser.start();
    const id = await server.create();
    const user = new DashboardUser(browser.page, server);
    user.page.setDefaultTimeout(500_000);
    await user.signIn();
    await user.open(`sandboxes/${id}/processes`);
    await server.call("POST", `/v1/sandboxes/${id}/processes`, {
      ...{ command: `read line; ${flood}`, name: "flood", onFull: "block" },
    });
    await user.button("Log").click();
    await user.page.getByLabel("Input", { exact: true }).fill("go");
    let began = performance.now();
    await user.button("Send").click();
    await user.page.getByText("ended with 0").waitFor();
    report("log", began, await user.memoryBytes());
    expect(await user.memoryBytes()).toBeLessThan(memoryMax);
    await expectNothingLost(user);

    await user.open(`sandboxes/${id}/terminals`);
    await user.button("New terminal").click();
    await user.page.getByText("connected", { exact: true }).waitFor();
    began = performance.now();
    await user.page.keyboard.type(`${flood}; echo over-$((1+1))\n`);
    await until("it is over", async () => (await user.screen()).includes("over-2"), 500_000);
    report("terminal", began, await user.memoryBytes());
    expect(await user.memoryBytes()).toBeLessThan(memoryMax);
    await expectNothingLost(user);
    expect(user.complaints).toEqual([]);
  });

  it("[DB16] a tab that slept for an hour without a network catches up", async () => {
    await using server = await useSharedServer();
    await using browser = await Browser.start();
    const user = new DashboardUser(browser.page, server);
    await user.page.clock.install();
    const kept = await server.create();
    const removed = await server.create();
    await user.signIn();
    await user.page.getByRole("link", { name: removed }).waitFor();
    await user.page.context().setOffline(true);
    await server.call("POST", `/v1/sandboxes/${kept}/pause`);
    await server.call("DELETE", `/v1/sandboxes/${removed}`);
    const made = await server.create();
    await user.page.clock.fastForward("01:00:00");
    await user.page.context().setOffline(false);
    await user.page.clock.fastForward("01:00");
    await user.page.getByRole("link", { name: made }).waitFor();
    await user.page.getByRole("link", { name: removed }).waitFor({ state: "detached" });
    await user.page.locator(".badge").filter({ hasText: "paused" }).waitFor();
    expect(await user.page.getByRole("link", { name: made }).count()).toBe(1);
    expect(await user.page.getByRole("alert").count()).toBe(0);
  });
});

/** Printed where the flood is large: docs/design/performance.md has the figures. */
function report(what: string, began: number, memory: number): void {
  if (process.env.BERTH_FLOOD_MB === undefined) return;
  const seconds = (performance.now() - began) / 1000;
  const [rate, held] = [floodBytes / 1e6 / seconds, memory / 1e6];
  console.error(
    `${what}: ${floodBytes / 1e6} MB in ${seconds.toFixed(1)} s, ${rate.toFixed(1)} MB/s, the page holds ${held.toFixed(0)} MB`,
  );
}
