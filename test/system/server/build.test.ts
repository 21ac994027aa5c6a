import { execFile } from "node:child_process";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LogFile } from "../../../container/launch/child.js";
import { isInstalled } from "../../../container/launch/install.js";
import { root } from "../../../container/launch/paths.js";
import { copyOfSources } from "./checkout.ts";

const run = promisify(execFile);
let folder: string;
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a build", () => {
  beforeEach(() => {
    folder = copyOfSources();
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  });
  const build = async () =>
    (await run("node", ["container/launch/build.js"], { cwd: folder })).stderr;

  it("[O12] runs once for concurrent requests, and again only for what has changed", async () => {
    const output = (await Promise.all([build(), build(), build()])).join("");
    expect(output.match(/Built the agent/g)).toHaveLength(1);
    expect(output.match(/Built the Worker/g)).toHaveLength(1);
    expect(statSync(join(folder, "dist/berth-agent")).mode & 0o111).not.toBe(0);
    expect(await build()).toBe("");
    appendFileSync(join(folder, "container/agent/main.ts"), "\n");
    expect(await build()).toMatch(/^berth: Built the agent in [\d.]+ s\.\n$/);
    appendFileSync(join(folder, "src/index.ts"), "\n");
    expect(await build()).toMatch(/^berth: Built the Worker in [\d.]+ s\.\n$/);
    rmSync(join(folder, "dist/worker/index.js"));
    expect(await build()).toMatch(/^berth: Built the Worker in [\d.]+ s\.\n$/);
  });

  it("[O12] that fails prints the reason, exits with 1, and keeps the previous output", async () => {
    await build();
    const before = readFileSync(join(folder, "dist/worker/index.js"), "utf8");
    appendFileSync(join(folder, "src/index.ts"), "\nimport './not-there.ts';\n");
    const failed = await build().catch((thrown) => thrown);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("not-there.ts") });
    expect(failed.stderr).toMatch(/^berth: .* failed .*\. Its output is above\.$/m);
    expect(readFileSync(join(folder, "dist/worker/index.js"), "utf8")).toBe(before);
  });
});

describe("the installed packages", () => {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-installed-"));
    mkdirSync(join(folder, "node_modules"));
  });
  const lock = (packages: Record<string, object>) => JSON.stringify({ packages });
  const wanted = {
    "": { name: "berth" },
    "node_modules/a": { version: "1.0.0", integrity: "sha512-a" },
    "node_modules/b": { version: "1.0.0", integrity: "sha512-b", optional: true },
  };
  const write = (recorded: Record<string, object> | undefined) => {
    writeFileSync(join(folder, "package-lock.json"), lock(wanted));
    if (recorded === undefined) return;
    writeFileSync(join(folder, "node_modules/.package-lock.json"), lock(recorded));
  };
  const { "node_modules/a": a, "node_modules/b": b } = wanted;

  it.each([
    [true, "all of it", { "node_modules/a": a, "node_modules/b": b }],
    [true, "all but what is optional", { "node_modules/a": a }],
    [true, "more than is wanted", { "node_modules/a": a, "node_modules/c": a }],
    [false, "too little", { "node_modules/b": b }],
    [false, "another version", { "node_modules/a": { ...a, version: "0.9.0" } }],
    [false, "another content", { "node_modules/a": { ...a, integrity: "sha512-x" } }],
    [false, "packages of an install that did not end", undefined],
  ])("[O13] is enough: %j, where there is %s", (enough, _, recorded) => {
    write(recorded);
    expect(isInstalled(folder)).toBe(enough);
  });
});

describe("a log", () => {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-log-"));
  });

  it("[O14] keeps its newest lines in one file and older ones in another, each within the limit", () => {
    const path = join(folder, "a.log");
    const log = new LogFile(path, 100);
    for (let line = 0; line < 50; line += 1) log.write(Buffer.from(`line ${line}\n`));
    expect(statSync(path).size).toBeLessThanOrEqual(100);
    expect(statSync(`${path}.old`).size).toBeLessThanOrEqual(100);
    expect(`${readFileSync(`${path}.old`)}${readFileSync(path)}`).toMatch(/line 48\nline 49\n$/);
    expect(log.tail(1)).toBe("line 49");
    const full = join(folder, "full.log");
    symlinkSync("/dev/full", full);
    // On a disk without room a line is lost, and nothing else.
    new LogFile(full, 100).write(Buffer.from("lost\n"));
    const reopened = new LogFile(path, 100);
    for (let line = 0; line < 20; line += 1) reopened.write(Buffer.from("more\n"));
    expect(statSync(path).size).toBeLessThanOrEqual(100);
  });
});
