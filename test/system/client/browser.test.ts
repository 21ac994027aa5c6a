import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import type * as Sdk from "../../../src/client/index.ts";
import { Browser, browserProgram } from "../browser/browser.ts";
import { useSharedServer } from "../shared-server.ts";
import { bundledSdk } from "./installed.ts";
import { startPlace } from "./same-origin.ts";

/** Runs in the page: nothing of this file is there. */
async function inThePage(key: string) {
  const { connect } = (window as unknown as { sdk: typeof Sdk }).sdk;
  const berth = connect({ url: location.origin, key });
  const { id } = await berth.create();
  const sandbox = berth.sandbox(id);
  await sandbox.waitUntilRunning();
  const bytes = new Uint8Array(300_000).map((_, n) => n);
  let progress: Sdk.Progress | undefined;
  await sandbox.writeFile("blob", new Blob([bytes]), {
    progress: (told) => {
      progress = told;
    },
  });
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
  }
  await sandbox.writeFile("stream", { stream: pieces(), bytes: bytes.length });
  const { stdout } = await sandbox.exec({ command: "cmp blob stream && wc -c < stream" });
  let down = 0;
  for await (const piece of (await sandbox.readFile("blob")).body) down += piece.byteLength;
  const code = await sandbox.process("none").catch((error: Sdk.BerthError) => error.code);
  const { state } = await sandbox.destroy();
  return { stdout, down, code, state, progress };
}

// Where no browser is installed there is nothing to look at.
describe.skipIf(browserProgram === undefined)("the SDK in a real browser", () => {
  it("[SD10] makes a sandbox, sends and fetches files, and runs a command", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-bundle-"));
    try {
      await using server = await useSharedServer();
      await using place = await startPlace(bundledSdk(root, folder), server.url);
      await using browser = await Browser.start();
      await browser.page.goto(place.url);
      const told = await browser.page.evaluate(inThePage, server.key);
      expect(told).toMatchObject({
        stdout: "300000\n",
        down: 300_000,
        code: "not_found",
        progress: { bytes: 300_000, total: 300_000 },
      });
      expect(told.state).toMatch(/^destroy/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
