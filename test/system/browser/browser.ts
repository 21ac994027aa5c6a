/**
 * Starts a real browser for a test and reads what the page's terminal shows. The caller ends it, or uses `await using`.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";

const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const flags = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

/** Undefined: there is none on this machine. */
export const browserProgram = places.find((path) => existsSync(path));

type PageWindow = { terminal: import("@xterm/xterm").Terminal; closedWith?: number };

/** What the page's terminal holds: each visible line with its colours, the cursor, which screen. */
export type Shown = { type: string; lines: string[]; cells: string[]; cursor: [number, number] };

export class Browser implements AsyncDisposable {
  readonly page: Page;
  readonly #context: BrowserContext;
  readonly #folder: string;

  static async start(): Promise<Browser> {
    if (browserProgram === undefined) throw new Error("no browser is installed here");
    const folder = mkdtempSync(join(tmpdir(), "berth-browser-"));
    const context = await chromium.launchPersistentContext(folder, {
      executablePath: browserProgram,
      args: flags,
      viewport: { width: 1200, height: 800 },
    });
    return new Browser(context, context.pages()[0] ?? (await context.newPage()), folder);
  }

  private constructor(context: BrowserContext, page: Page, folder: string) {
    this.#context = context;
    this.page = page;
    this.#folder = folder;
  }

  async open(url: string): Promise<void> {
    await this.page.goto(url);
    await this.page.waitForSelector(".xterm-screen");
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.page.waitForSelector(".xterm-screen");
  }

  /** As from a keyboard. */
  async type(text: string): Promise<void> {
    await this.page.locator(".xterm-helper-textarea").focus();
    await this.page.keyboard.type(text);
  }

  async resize(cols: number, rows: number): Promise<void> {
    await this.page.evaluate(
      ([width, height]) => {
        (window as unknown as PageWindow).terminal.resize(width, height);
      },
      [cols, rows] as const,
    );
  }

  shown(): Promise<Shown> {
    return this.page.evaluate(() => {
      const { terminal } = window as unknown as PageWindow;
      const { active } = terminal.buffer;
      const rows = Array.from({ length: terminal.rows }, (_, y) =>
        active.getLine(active.baseY + y),
      );
      return {
        type: active.type,
        lines: rows.map((line) => line?.translateToString(true) ?? ""),
        cells: rows.flatMap((line) =>
          Array.from({ length: terminal.cols }, (_, x) => {
            const cell = line?.getCell(x);
            const flags = [cell?.isBold(), cell?.isInverse(), cell?.isUnderline()].map(Boolean);
            return `${cell?.getChars() || " "} ${cell?.getFgColor()} ${cell?.getBgColor()} ${flags}`;
          }),
        ),
        cursor: [active.cursorX, active.cursorY],
      };
    });
  }

  closedWith(): Promise<number | undefined> {
    return this.page.evaluate(() => (window as unknown as PageWindow).closedWith);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
