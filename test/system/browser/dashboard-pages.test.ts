import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { useSharedServer } from "../shared-server.ts";
import { Browser, browserProgram } from "./browser.ts";
import { DashboardUser } from "./dashboard-user.ts";

describe.skipIf(browserProgram === undefined)("the pages of the dashboard", () => {
  it("[DB12] changes settings, shows what is used, and a fork below its checkpoint", async () => {
    await using server = await useSharedServer();
    await using browser = await Browser.start();
    const user = new DashboardUser(browser.page, server);
    const id = await server.create({ env: { STAGE: "secret" } });
    const saved = await server.call("POST", `/v1/sandboxes/${id}/checkpoints`, { name: "first" });
    const { body: fork } = await server.call("POST", "/v1/sandboxes", {
      ...{ from: saved.body.id, start: false },
    });
    await user.signIn();
    await user.open(`sandboxes/${id}/settings`);
    await user.page.getByLabel("Minutes without work until it is idle").fill("30");
    await user.page.getByLabel("Name of a variable").fill("MODE");
    await user.page.getByLabel("Value of the variable").fill("fast");
    await user.button("Set").click();
    await user.button("Save").click();
    await user.page.getByRole("cell", { name: "MODE" }).waitFor();
    const { body: settings } = await server.call("GET", `/v1/sandboxes/${id}/settings`);
    expect(settings).toMatchObject({ idleTimeoutMs: 1_800_000, envNames: ["STAGE", "MODE"] });
    expect(await user.page.content()).not.toContain("secret");
    // Somebody else changes them meanwhile: the edit is refused by name, and nothing is lost.
    await user.page.getByLabel("Checkpoints that are kept").fill("5");
    await server.call("PATCH", `/v1/sandboxes/${id}/settings`, { wake: "never" });
    await user.button("Save").click();
    await user.page.getByText("version_mismatch").waitFor();
    await user.open(`sandboxes/${id}/checkpoints`);
    await user.page
      .getByRole("list", { name: "Forks" })
      .getByRole("link", { name: String(fork.id) })
      .click();
    await user.page.getByText("Forked from a checkpoint").waitFor();
    await user.open(`sandboxes/${id}/metrics`);
    await user.page.getByRole("heading", { name: /^Memory of .* [KMG]iB$/ }).waitFor();
    await user.page.locator(".u-wrap").first().waitFor();
    await user.open("sandboxes");
    await user.page.locator(".usage").filter({ hasText: "MiB" }).first().waitFor();
    expect(user.complaints).toEqual([]);
  });

  it("[DB13] lists, creates and removes keys with an administrator's key, which no reload keeps", async () => {
    await using server = await useSharedServer();
    await using browser = await Browser.start();
    const user = new DashboardUser(browser.page, server);
    const administrator = readFileSync(join(server.data, "admin-key"), "utf8").trim();
    await user.signIn();
    await user.open("keys");
    await user.page.getByLabel("The administrator's key").fill(server.key);
    await user.button("Use it").click();
    await user.page.getByText("Using the key failed").waitFor();
    await user.page.getByLabel("The administrator's key").fill(administrator);
    await user.button("Use it").click();
    await user.page.getByLabel("Name", { exact: true }).fill("alice");
    await user.page.getByLabel("Tenant").fill(server.tenant);
    await user.button("Create").click();
    const made = await user.page.getByText("The key of alice").locator("code").textContent();
    const answer = async () =>
      (await fetch(`${server.url}/v1/counts`, { headers: { authorization: `Bearer ${made}` } }))
        .status;
    expect(await answer()).toBe(200);
    const row = user.page.getByRole("row").filter({ hasText: "alice" });
    await row.getByRole("button", { name: "Remove …" }).click();
    await user.page.getByLabel("Type alice to continue").fill("alice");
    await user.button("Remove").click();
    await row.waitFor({ state: "detached" });
    await until("the key is refused", async () => (await answer()) === 401);
    await user.page.reload();
    await user.page.getByLabel("The administrator's key").waitFor();
    const stored = () =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]);
    expect(await user.page.evaluate(stored)).not.toContain(administrator);
    expect(user.complaints).toEqual([]);
  });
});
