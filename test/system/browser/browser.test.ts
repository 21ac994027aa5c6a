import { describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { type Server, startServer } from "../server.ts";
import { Browser, browserProgram, type Shown } from "./browser.ts";
import { TerminalApp } from "./terminal-app.ts";

if (browserProgram === undefined) {
  console.error("WARNING: no Chromium here (Debian's package `chromium`): browsers are not tested");
}

async function openTerminal(server: Server): Promise<string> {
  const id = await server.create();
  const terminal = await server.call("POST", `/v1/sandboxes/${id}/terminals`, {
    id: "main",
    cols: 80,
    rows: 24,
    env: { TERM: "xterm-256color", LANG: "C.UTF-8", PS1: "$ " },
    argv: ["bash", "--norc", "--noprofile"],
  });
  expect(terminal.status, JSON.stringify(terminal.body)).toBe(201);
  return `/v1/sandboxes/${id}/terminals/main`;
}

async function shows(browser: Browser, holds: (shown: Shown) => boolean): Promise<Shown> {
  let shown = await browser.shown();
  await until(
    "the browser shows it",
    async () => {
      shown = await browser.shown();
      return holds(shown);
    },
    30_000,
  ).catch((thrown) => {
    throw new Error(`${thrown}: ${shown.lines.join("\n")}`);
  });
  return shown;
}

const has = (line: string) => (shown: Shown) => shown.lines.includes(line);

describe.skipIf(browserProgram === undefined)("a terminal in a real browser", () => {
  it("[G8] with stock xterm.js: keys, size, a full-screen program, and the same screen after a reload", async () => {
    await using server = await startServer();
    const terminal = await openTerminal(server);
    await using app = await TerminalApp.start(server, terminal);
    await using browser = await Browser.start();
    await browser.open(app.url);
    await browser.type("stty size; echo héllo\n");
    await shows(browser, (shown) => has("24 80")(shown) && has("héllo")(shown));

    await browser.resize(100, 30);
    await until("the terminal is resized", async () => {
      const { body } = await server.call("GET", terminal);
      return body.cols === 100 && body.rows === 30;
    });
    await browser.type("stty size\n");
    await shows(browser, has("30 100"));

    await browser.type(
      "for i in $(seq 200); do printf '\\e[3%dmline %d\\e[m\\n' $((i % 8)) $i; done > file\n",
    );
    await browser.type("less -R file\n");
    const isPage = (shown: Shown) => has("line 29")(shown) && shown.lines.at(-1) === "file";
    const before = await shows(browser, (shown) => shown.type === "alternate" && isPage(shown));
    expect(new Set(before.cells.map((cell) => cell.split(" ")[1])).size).toBeGreaterThan(5);
    await browser.reload();
    const after = await shows(browser, isPage);
    expect(after).toEqual(before);

    await browser.type("q");
    const shell = await shows(browser, ({ type }) => type === "normal");
    expect(shell.lines).toContain("30 100");
    await browser.reload();
    expect(await shows(browser, has("30 100"))).toEqual(await settled(browser));
    await browser.type("exit\n");
    await until("the terminal is over", async () => (await browser.closedWith()) === 1000);
    await server.stop();
  });

  it("[G9] refuses a page of another origin and a used ticket", async () => {
    await using server = await startServer();
    const terminal = await openTerminal(server);
    await using app = await TerminalApp.start(server, terminal);
    await using browser = await Browser.start();
    await browser.open(app.url);
    const opens = (url: string) =>
      browser.page.evaluate(
        (to) =>
          new Promise<boolean>((resolve) => {
            const socket = new WebSocket(to);
            socket.onopen = () => {
              socket.close();
              resolve(true);
            };
            socket.onerror = () => resolve(false);
          }),
        url,
      );
    const own = app.url.replace("http", "ws");
    const path = await app.ticket();
    expect(await opens(`${own}${path}`)).toBe(true);
    expect(await opens(`${own}${path}`)).toBe(false);
    expect(await opens(`${own}${await app.ticket()}`)).toBe(true);
    // The server's own address is not where the page came from.
    expect(await opens(`${server.url.replace("http", "ws")}${await app.ticket()}`)).toBe(false);
    await server.stop();
  });
});

/** Once two looks in a row are the same. */
async function settled(browser: Browser): Promise<Shown> {
  let last = await browser.shown();
  await until("the screen is still", async () => {
    const now = await browser.shown();
    const isSame = JSON.stringify(now) === JSON.stringify(last);
    last = now;
    return isSame;
  });
  return last;
}
