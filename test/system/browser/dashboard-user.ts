/** A person at the dashboard: signs in by a link, opens its places, and sees what the browser complains about. */
import type { Locator, Page } from "playwright-core";
import type { RunningServer } from "../server.ts";

export class DashboardUser {
  readonly page: Page;
  readonly #server: RunningServer;
  /** What the browser refused or could not run. */
  readonly complaints: string[] = [];

  constructor(page: Page, server: RunningServer) {
    this.page = page;
    this.#server = server;
    page.setDefaultTimeout(60_000);
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) this.complaints.push(message.text());
    });
  }

  async link(): Promise<string> {
    const { body } = await this.#server.call("POST", "/v1/sign-ins");
    return `${this.#server.url}/#ticket=${body.ticket}`;
  }

  async signIn(): Promise<void> {
    await this.page.goto(await this.link());
    await this.page.getByRole("button", { name: "Sign out" }).waitFor();
  }

  async open(place: string): Promise<void> {
    await this.page.evaluate((hash) => {
      location.hash = hash;
    }, `#/${place}`);
  }

  button(name: string): Locator {
    return this.page.getByRole("button", { name, exact: true });
  }

  /** Bytes of the page's scripts and buffers, without what can be collected. */
  async memoryBytes(): Promise<number> {
    const tools = await this.page.context().newCDPSession(this.page);
    await tools.send("HeapProfiler.collectGarbage");
    const { usedSize, ...others } = await tools.send("Runtime.getHeapUsage");
    await tools.detach();
    // Newer than the types: array buffers lie outside of the heap.
    const { backingStorageSize = 0 } = others as { backingStorageSize?: number };
    return usedSize + backingStorageSize;
  }

  /** What a terminal or a log shows, without the spaces that fill its lines. */
  async screen(): Promise<string> {
    const rows = await this.page.locator(".xterm-rows > div").allInnerTexts();
    return rows.map((row) => row.replaceAll("\u00a0", " ").trimEnd()).join("\n");
  }
}
