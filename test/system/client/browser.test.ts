import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import type * as Sdk from "../../../src/client/index.ts";
import { Browser, browserProgram } from "../browser/browser.ts";
import { useSharedServer } from "../shared-server.ts";
import { bundledSdk } from "./installed-package.ts";
import { startPageServer } from "./page-server.ts";

/** Runs in the page, where nothing of this file exists. */
async function inThePage(key: string) {
  const { connect } = (window as unknown as { sdk: typeof Sdk }).sdk;
  const berth = connect({ url: location.origin, key });
  const { id } = await berth.create();
  const sandbox = berth.sandbox(id);
  await sandbox.waitUntilRunning();
  const bytes = new Uint8Array(300_000).map((_, n) => n);
  let progress: Sdk.Progress | undefined;
  await sandbox.writeFile("blob", new Blob([bytes]), {
    progress: (current) => {
      progress = current;
    },
  });
  async function* chunks() {
    for (let start = 0; start < bytes.length; start += 1000) {
      yield bytes.subarray(start, start + 1000);
    }
  }
  await sandbox.writeFile("stream", { stream: chunks(), bytes: bytes.length });
  const { stdout } = await sandbox.exec({ command: "cmp blob stream && wc -c < stream" });
  let down = 0;
  for await (const chunk of (await sandbox.readFile("blob")).body) down += chunk.byteLength;
  const code = await sandbox.process("none").catch((error: Sdk.BerthError) => error.code);
  const { state } = await sandbox.destroy();
  return { stdout, down, code, state, progress };
}

// Skipped where no browser is installed.
describe.skipIf(browserProgram === undefined)("the SDK in a real browser", () => {
  it("[SD10] creates a sandbox, transfers files and runs a command", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-bundle-"));
    try {
      await using server = await useSharedServer();
      await using page = await startPageServer(bundledSdk(root, folder), server.url);
      await using browser = await Browser.start();
      await browser.page.goto(page.url);
      const result = await browser.page.evaluate(inThePage, server.key);
      expect(result).toMatchObject({
        stdout: "300000\n",
        down: 300_000,
        code: "not_found",
        progress: { bytes: 300_000, total: 300_000 },
      });
      expect(result.state).toMatch(/^destroy/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
