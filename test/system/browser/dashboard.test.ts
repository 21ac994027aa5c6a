import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { paths } from "../../../container/launch/paths.js";
import { until } from "../../until.ts";
import { startServer } from "../server.ts";
import { useSharedServer } from "../shared-server.ts";
import { Browser, browserProgram } from "./browser.ts";
import { DashboardUser } from "./dashboard-user.ts";

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
  "utf8",
);

/** Would run as a script wherever its text became markup. */
const attack = '<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>';

async function seriousFindings(page: Page): Promise<string[]> {
  // Evaluated by the browser's own tools, because the page's policy allows no other script.
  await page.evaluate(axeSource);
  return await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: typeof import("axe-core") };
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`);
  });
}

describe.skipIf(browserProgram === undefined)("the dashboard in a real browser", () => {
  it("[DB1] [DB2] signs in by a link once, shows a new sandbox, and signs out", async () => {
    await using server = await useSharedServer();
    await using browser = await Browser.start();
    const user = new DashboardUser(browser.page, server);
    const link = await user.link();
    await user.page.goto(link);
    await user.button("Sign out").waitFor();
    expect(new URL(user.page.url()).hash).toBe("#/");
    await user.page.getByText("No sandbox yet").waitFor();
    const id = await server.create({ metadata: { owner: "ci" } });
    await user.page.getByRole("link", { name: id }).waitFor();
    await user.page.getByRole("searchbox", { name: "Search" }).fill("owner=nobody");
    await user.page.getByRole("link", { name: id }).waitFor({ state: "detached" });
    expect(user.page.url()).toContain("q=owner");
    await user.button("Sign out").click();
    await user.page.getByLabel("Key").waitFor();
    await user.page.goto("about:blank");
    await user.page.goto(link);
    await user.page.getByText("Signing in failed").waitFor();
    await user.page.getByLabel("Key").fill(server.key);
    await user.button("Sign in").click();
    await user.button("Sign out").waitFor();
    expect(user.complaints).toEqual([]);
  });

  it("[DB4] [DB6] [DB10] shows hostile text as text, and keeps ports and edits apart from the session", async () => {
    await using server = await useSharedServer();
    await using browser = await Browser.start();
    const id = await server.create({ scope: { repo: `x/${attack}` }, metadata: { note: attack } });
    const user = new DashboardUser(browser.page, server);
    await user.signIn();
    const place = `sandboxes/${id}`;
    const isAttacked = () => user.page.evaluate(() => "attacked" in window);

    await user.open(place);
    await user.page.getByRole("heading", { level: 1 }).waitFor();
    await user.open(`${place}/metadata`);
    await user.page.getByLabel("Value of note").waitFor();
    const title = "\\033]0;<script>window.attacked=1</script>\\007";
    await server.call("POST", `/v1/sandboxes/${id}/processes`, {
      command: `printf '%s${title}' '${attack}' ; echo the end`,
    });
    await user.open(`${place}/processes`);
    await user.button("Log").click();
    await until("the log is shown", async () => (await user.screen()).includes("the end"));
    expect(await user.screen()).toContain("<img src=x");

    const titleAtLoad = await user.page.title();
    await user.open(`${place}/terminals`);
    await user.button("New terminal").click();
    await user.page.getByText("connected", { exact: true }).waitFor();
    // A title, a link that runs, the clipboard, and a file: what terminals of other makers have obeyed.
    const sequences = [
      `\\033]0;${attack}\\007`,
      "\\033]8;;javascript:window.attacked=1\\007click\\033]8;;\\007",
      `\\033]52;c;${Buffer.from(attack).toString("base64")}\\007`,
      "\\033]1337;File=inline=1:PHN2Zy8+\\007",
    ];
    await server.exec(id, `printf '%b' '${sequences.join("")} shown' > sequences`);
    await user.page.keyboard.type("cat sequences; echo to-$((1+1))\n");
    await until("the sequences are written", async () => (await user.screen()).includes("to-2"));
    // The screen that gets the click lies over the rows.
    await user.page.getByText("click").first().click({ force: true });
    expect(await user.page.title()).toBe(titleAtLoad);

    const saved = await server.call("POST", `/v1/sandboxes/${id}/checkpoints`, { name: attack });
    expect(saved.status).toBe(201);
    await server.call("POST", `/v1/sandboxes/${id}/lease`, { holder: attack, ttlMs: 60_000 });
    for (const tab of ["lease", "checkpoints", "events"]) {
      await user.open(`${place}/${tab}`);
      await user.page.getByText("onerror").first().waitFor();
    }
    await server.call("DELETE", `/v1/sandboxes/${id}/lease?break=true&reason=over`);

    const making = `printf '%s' '${attack}' > page.html; touch '<b onclick=1>.txt'`;
    await until("the lease has ended and a command runs", async () => {
      return (await server.exec(id, making)).status === 200;
    });
    await user.open(`${place}/files`);
    await user.page.getByRole("button", { name: "<b onclick=1>.txt" }).waitFor();
    await user.button("page.html").click();
    const text = user.page.getByRole("textbox", { name: /Text of/ });
    await text.waitFor();
    expect(await text.textContent()).toContain("onerror");
    // Somebody else writes the file while it is edited here.
    await text.press("End");
    await user.page.keyboard.type("mine");
    await server.exec(id, "echo theirs > page.html");
    await user.button("Save").click();
    await user.page.getByText("The file changed since it was read").waitFor();
    expect((await server.exec(id, "cat page.html")).body.stdout).toBe("theirs\n");

    // A server in the sandbox that reaches for the session of the person who looks at it.
    const api = `${server.url}/v1/session`;
    const call = `fetch("${api}",{credentials:"include",headers:{authorization:"Bearer session"}})`;
    const page = `<script>${call}.then(r=>r.text(),e=>"refused").then(t=>document.title=document.body.append(t)||t)</script>`;
    const serve = `printf '%s' '${page}' > index.html; python3 -m http.server 8000`;
    await server.call("POST", `/v1/sandboxes/${id}/processes`, { command: serve });
    await user.open(`${place}/ports`);
    await user.button("Open").click();
    const frame = user.page.frameLocator("iframe.preview");
    const shown = () =>
      frame
        .locator("body")
        .textContent({ timeout: 2_000 })
        .catch(() => "");
    await until("the preview has tried", async () => {
      if ((await shown())?.includes("refused") === true) return true;
      // The server in the sandbox may not listen yet.
      await user.button("Open").click();
      return false;
    });

    await user.open("sandboxes");
    await user.page.getByRole("link", { name: /onerror/ }).waitFor();
    expect(await isAttacked()).toBe(false);
    expect(user.complaints).toEqual([]);
  }, 300_000);

  it("[DB8] has nothing serious for the accessibility checker on any page", async () => {
    await using server = await useSharedServer();
    await using browser = await Browser.start();
    const id = await server.create({ scope: { repo: "github.com/acme/shop", branch: "main" } });
    await server.exec(id, "echo '# Shop' > README.md");
    await server.call("POST", `/v1/sandboxes/${id}/processes`, { command: "echo hello" });
    const checkpoint = await server.call("POST", `/v1/sandboxes/${id}/checkpoints`, {
      name: "first",
    });
    await server.call("POST", `/v1/sandboxes/${id}/lease`, { holder: "alice" });
    await server.call("PUT", "/v1/plans/release-42", {});
    await server.call("PUT", "/v1/plans/release-42/sandboxes/shop", { sandboxId: id });
    const user = new DashboardUser(browser.page, server);
    await user.signIn();
    await server.call("POST", "/v1/sandboxes", { from: checkpoint.body.id, start: false });
    const tabs = ["overview", "terminals", "processes", "files", "ports", "lease", "checkpoints"];
    const places = [
      ...["sandboxes", "plans", "plans/release-42", "images", "keys", "machine"],
      ...[...tabs, "metadata", "settings", "metrics", "events"].map(
        (tab) => `sandboxes/${id}/${tab}`,
      ),
    ];
    const findings: string[] = [];
    for (const [width, colorScheme] of [[1440, "light"] as const, [390, "dark"] as const]) {
      await user.page.setViewportSize({ width, height: 900 });
      await user.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const place of places) {
        await user.open(place);
        const rest = user.page.getByText("Do the same elsewhere").first();
        await rest.waitFor().catch((error) => {
          throw new Error(`${place} at ${width}: ${error} ${user.complaints}`);
        });
        for (const finding of await seriousFindings(user.page)) {
          findings.push(`${place} at ${width}: ${finding}`);
        }
        const { scroll, inner } = await user.page.evaluate(() => ({
          scroll: document.documentElement.scrollWidth,
          inner: window.innerWidth,
        }));
        if (scroll > inner) findings.push(`${place} at ${width}: is ${scroll} wide`);
      }
    }
    expect(findings).toEqual([]);
    expect(user.complaints).toEqual([]);
    // Some thirty readings of the checker, each of seconds where others take the cores.
  }, 300_000);

  it("[DB9] continues in a terminal and a log after the server was killed", async () => {
    await using server = await startServer();
    await using browser = await Browser.start();
    const id = await server.create();
    const count = "for i in $(seq 1 400); do echo line-$i; sleep 0.02; done; echo over";
    await server.call("POST", `/v1/sandboxes/${id}/processes`, { command: count });
    const user = new DashboardUser(browser.page, server);
    await user.signIn();
    await user.open(`sandboxes/${id}/processes`);
    await user.button("Log").click();
    await until("the log runs", async () => (await user.screen()).includes("line-"));
    process.kill(server.processOf("workerd serve").pid, "SIGKILL");
    await user.page.getByText("ended with 0").waitFor();
    expect(await user.screen()).toMatch(/line-399\nline-400\nover/);
    await user.open(`sandboxes/${id}/terminals`);
    await user.button("New terminal").click();
    await user.page.getByText("connected", { exact: true }).waitFor();
    await user.page.keyboard.type(
      "clear; for i in $(seq 1 100); do echo row-$i; sleep 0.05; done; echo over-$((1+1))\n",
    );
    await until("the terminal answers", async () => (await user.screen()).includes("row-1"));
    process.kill(server.processOf("workerd serve").pid, "SIGKILL");
    await until("the terminal continues", async () => (await user.screen()).includes("over-2"));
    const last = (await user.screen()).split("\n").filter((line) => /^(row|over)-\d+$/.test(line));
    const expected = Array.from({ length: 100 }, (_, index) => `row-${index + 1}`);
    expect(last.slice(-20)).toEqual([...expected, "over-2"].slice(-20));
    await server.stop();
  });

  it("[DB7] keeps a page of 10,000 sandboxes small, and shows a change of one", async () => {
    await using server = await useSharedServer();
    await using browser = await Browser.start();
    const { page } = browser;
    const user = new DashboardUser(page, server);
    const rows = Array.from({ length: 10_000 }, (_, number) => madeUpRow(number));
    // Made by the browser, because to make that many takes minutes; each event and read below is the server's form.
    let state = "running";
    let tell: (() => void) | undefined;
    await page.route("**/v1/sandboxes?**", async (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get("cursor") ?? 0);
      const next = from + 1000 < rows.length ? String(from + 1000) : null;
      await route.fulfill({ json: { sandboxes: rows.slice(from, from + 1000), nextCursor: next } });
    });
    await page.route("**/v1/sandboxes/row*", (route) => {
      const id = new URL(route.request().url()).pathname.split("/").at(-1);
      const row = rows.find((candidate) => candidate.id === id);
      return route.fulfill({ json: id === madeUpId(9_999) ? { ...row, state } : row });
    });
    await page.route("**/v1/events**", async (route) => {
      await new Promise<void>((resolve) => {
        tell = resolve;
      });
      const data = {
        seq: 1,
        at: "2030-01-01T00:00:00.000Z",
        sandbox: madeUpId(9_999),
        event: { type: "state", state },
      };
      await route.fulfill({
        headers: { "content-type": "text/event-stream" },
        body: `id: 1\nevent: event\ndata: ${JSON.stringify(data)}\n\n`,
      });
    });
    await user.signIn();
    await page.getByText("10000", { exact: true }).waitFor();
    const drawn = () => page.locator(".list-row:not(.list-head)").count();
    expect(await drawn()).toBeLessThan(80);
    await page.locator(".rows").evaluate((element) => {
      element.scrollTop = 5_000 * 52;
    });
    await page.getByRole("link", { name: madeUpId(5_000) }).waitFor();
    expect(await drawn()).toBeLessThan(80);
    await page.getByRole("searchbox", { name: "Search" }).fill(madeUpId(9_999));
    await page.getByRole("link", { name: madeUpId(9_999) }).waitFor();
    expect(await page.locator(".list-row .badge").allInnerTexts()).toEqual(["running"]);
    state = "failed";
    await until("the page follows the events", () => tell !== undefined);
    tell?.();
    await page.locator(".list-row .badge.bad").waitFor();
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  it("[DB5] the page cannot be framed, and its policy allows nothing from elsewhere and nothing inline", async () => {
    await using server = await useSharedServer();
    for (const path of ["/", "/assets/main.js", "/assets/main.css"]) {
      const response = await fetch(`${server.url}${path}`);
      expect(response.status).toBe(200);
      const policy = response.headers.get("content-security-policy") ?? "";
      for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"]) {
        expect(policy).toContain(part);
      }
      expect(policy).not.toContain("unsafe");
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      await response.body?.cancel();
    }
    for (const path of ["/assets/..%2fworker.js", "/assets/none.js", "/assets/index.html"]) {
      const response = await fetch(`${server.url}${path}`);
      expect(response.status, path).toBe(404);
      await response.body?.cancel();
    }
  });

  it("[DB11] loads at most 350 KB compressed for the first view", () => {
    const folder = join(paths.dashboard, "assets");
    const textOf = (name: string) => readFileSync(join(folder, name));
    const first = new Set(["main.js", "main.css"]);
    for (const name of first) {
      // A static import of a part is loaded with it; an import() is not.
      for (const [, part] of textOf(name)
        .toString()
        .matchAll(/from"\.\/(part-\w+\.js)"/g)) {
        if (part !== undefined) first.add(part);
      }
    }
    const bytes = [...first]
      .map((name) => gzipSync(textOf(name)).length)
      .reduce((a, b) => a + b, 0);
    expect(first.size).toBeLessThan(readdirSync(folder).length);
    expect(bytes).toBeLessThan(350_000);
  });
});

const madeUpId = (number: number) => `row${String(number).padStart(21, "0")}`;

const madeUpRow = (number: number) => ({
  id: madeUpId(number),
  state: "running",
  stateSince: "2026-01-01T00:00:00.000Z",
  createdAt: new Date(1_767_225_600_000 + (10_000 - number) * 1000).toISOString(),
  stateAsOf: "2026-01-01T00:00:00.000Z",
  current: true,
  network: { internet: true },
  idleTimeoutMs: 600_000,
  onIdle: "pause",
  wake: "auto",
  metadata: {},
  metadataVersion: 0,
});
