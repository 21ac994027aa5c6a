import { describe, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { newFolder } from "../../new-folder.ts";
import { bundledSdk } from "../client/installed-package.ts";
import { startServer } from "../server.ts";
import { Browser, browserProgram } from "./browser.ts";
import { startPageServer } from "./page-server.ts";

type Sdk = typeof import("../../../src/client/index.ts");
type BerthError = import("../../../src/client/index.ts").BerthError;
type At = { url: string; key: string };

/** Runs in the page: nothing of this file is there. Each step needs headers that browsers hold back by themselves. */
async function worksFromThePage({ url, key }: At) {
  const { connect } = (window as unknown as { sdk: Sdk }).sdk;
  const berth = connect({ url, key });
  const sandbox = await berth.create();
  await sandbox.waitUntilRunning();
  const bytes = new Uint8Array(300_000).map((_, n) => n);
  const uploads: number[] = [];
  const progress = (current: { bytes: number }) => uploads.push(current.bytes);
  await sandbox.files.write("blob", new Blob([bytes]), { progress });
  async function* chunks() {
    for (let start = 0; start < bytes.length; start += 1000) {
      yield bytes.subarray(start, start + 1000);
    }
  }
  await sandbox.files.write("stream", { stream: chunks(), bytes: bytes.length });
  const { etag, body } = await sandbox.files.stream("blob", { range: { start: 299_990 } });
  let down = 0;
  for await (const piece of body) down += piece.byteLength;
  const old = await sandbox.files
    .write("blob", bytes, { ifMatch: '"another"' })
    .catch((error: BerthError) => error.code);
  await sandbox.files.write("blob", bytes, { ifMatch: etag });
  const { version } = await sandbox.metadata.patch({ stage: "test" });
  const changed = await sandbox.metadata.replace({ stage: "live" }, { ifMatch: version });
  const lease = await sandbox.lease.hold({ holder: "the page" });
  const { stdout } = await sandbox.exec(
    { command: "cmp blob stream && wc -c < stream" },
    { lease: lease.token, idempotencyKey: "once" },
  );
  await lease.release();
  const started = await sandbox.processes.start("echo out; exit 3");
  let ended: unknown;
  for await (const event of started.logs()) {
    if (event.type === "exit") ended = event.exitCode;
  }
  const { id } = await sandbox.terminals.create({ argv: ["sh", "-c", "read line; exit 4"] });
  const terminal = await sandbox.terminal(id).attach();
  terminal.write("\n");
  let left: unknown;
  for await (const event of terminal) if (event.type === "exit") left = event.exitCode;
  const refused = await sandbox
    .process("none")
    .get()
    .catch((error: BerthError) => error);
  const unknown = await connect({ url, key: "berth_of_nobody" })
    .list()
    .catch((error: BerthError) => error.code);
  const { state } = await sandbox.delete();
  return {
    uploaded: uploads.at(-1),
    ...{ etag, down, old, stdout, ended, left, unknown, state },
    metadata: changed.metadata,
    refused: refused instanceof Error ? [refused.code, refused.requestId] : [],
  };
}

/** What a page can learn that is not listed: whether there is a server at all, as of any address. */
async function triesFromThePage({ url, key }: At) {
  const { connect } = (window as unknown as { sdk: Sdk }).sdk;
  const berth = connect({ url, key, retry: { retries: 0 } });
  const codes: unknown[] = [];
  for (const attempt of [() => berth.list(), () => berth.create({ start: false })]) {
    codes.push(await attempt().catch((error: BerthError) => error.code));
  }
  const opaque = await fetch(`${url}/health`, { mode: "no-cors" });
  const health = await fetch(`${url}/health`).catch((error: Error) => error.name);
  return { codes, opaque: [opaque.type, opaque.status], health, origin: location.origin };
}

// Where no browser is installed there is nothing to look at.
describe.skipIf(browserProgram === undefined)("the SDK in a page of another origin", () => {
  it("[W13] [SD10] works fully from a listed origin, and not at all from any other", async () => {
    const folder = newFolder("bundle");
    await using place = await startPageServer(bundledSdk(root, folder));
    await using server = await startServer({ env: { BERTH_ORIGINS: place.url } });
    const target = { url: server.url, key: server.key };
    await using browser = await Browser.start();
    await browser.page.goto(place.url);
    const result = await browser.page.evaluate(worksFromThePage, target);
    expect(result).toMatchObject({
      uploaded: 300_000,
      ...{ etag: expect.stringMatching(/^".+"$/), down: 10, old: "file_changed" },
      ...{ stdout: "300000\n", ended: 3, left: 4, unknown: "unauthenticated" },
      metadata: { stage: "live" },
      refused: ["not_found", expect.stringMatching(/^[0-9a-f]{24}$/)],
    });
    expect(result.state).toMatch(/^destroy/);
    expect((await server.call("GET", "/v1/counts")).body.total).toBe(0);

    await browser.page.goto(place.url.replace("127.0.0.1", "localhost"));
    const nothing = await browser.page.evaluate(triesFromThePage, target);
    expect(nothing.origin).not.toBe(place.url);
    // It did reach the server, and was kept from each answer.
    expect(nothing.opaque).toEqual(["opaque", 0]);
    expect(nothing.health).toBe("TypeError");
    expect(nothing.codes).toEqual(["unavailable", "operation_interrupted"]);
    expect((await server.call("GET", "/v1/counts")).body.total).toBe(0);
  });
});
