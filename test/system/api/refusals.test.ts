import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { sandboxesAt } from "../../../container/launch/descriptors.js";
import { help, parseOptions } from "../../../container/launch/options.js";
import { root } from "../../../container/launch/paths.js";
import { type Ended, launch } from "../server.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-refusal-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One line of ours, nothing on stdout, exit code 1, and no data folder was begun. */
function expectRefusal(ended: Ended, line: RegExp): void {
  expect(ended.stdout).toBe("");
  const ownLines = ended.stderr.split("\n").filter((text) => text.startsWith("berth:"));
  expect(ownLines).toEqual([expect.stringMatching(line)]);
  expect(ended.stderr).not.toMatch(/^\s+at /m);
  expect(ended.code).toBe(1);
  expect(readdirSync(folder)).not.toContain("data");
}

describe("configuration that npm start refuses", () => {
  it.each([
    [["--prot", "1"], {}, /^berth: Unknown flag `--prot`\. See `npm start -- --help`\.$/],
    [["9000"], {}, /^berth: Unknown argument `9000`\. See `npm start -- --help`\.$/],
    [["--port", "99999"], {}, /^berth: `--port` must be a number from 0 to 65535, not "99999"\.$/],
    [["--port"], {}, /^berth: `--port` needs a value\. See `npm start -- --help`\.$/],
    [
      ["--port", "--host", "::1"],
      {},
      /^berth: `--port` needs a value\. See `npm start -- --help`\.$/,
    ],
    [["--port", "1", "--port", "2"], {}, /^berth: `--port` is given twice\.$/],
    [["--host", "a b"], {}, /^berth: `--host` must be an address or a host name, not "a b"\.$/],
    [["--data="], {}, /^berth: `--data` needs a value\. See `npm start -- --help`\.$/],
    [[], { BERTH_PORT: "http" }, /^berth: BERTH_PORT must be a number .*, not "http"\.$/],
    [
      [],
      { npm_config_port: "9000" },
      /^berth: npm has taken `--port` .* `npm start -- --port 9000`\.$/,
    ],
    [
      ["--data", "/dev/null/x"],
      {},
      /^berth: Cannot write the data folder \/dev\/null\/x \(ENOTDIR\)\. .*`--data`\.$/,
    ],
    [
      ["--data", "/proc/x/y"],
      {},
      /^berth: Cannot write the data folder \/proc\/x\/y \(ENOENT\)\. .*`--data`\.$/,
    ],
    [
      [],
      { BERTH_ENGINE_CONTAINERS_MAX: "9e9" },
      /^berth: The limit of \d+ open files allows \d+ sandboxes at once, but .*ulimit -n/,
    ],
    [
      [],
      { BERTH_ENGINE_CONTAINERS_MAX: "many" },
      /^berth: BERTH_ENGINE_CONTAINERS_MAX must be a whole number, not "many"$/,
    ],
  ])("[O10] %j %j is refused with one line", async (args, env, line) => {
    const hasData = args.some((arg) => arg.startsWith("--data"));
    const data = hasData ? [] : ["--data", join(folder, "data")];
    // First, so that a flag that lacks its value is still the last one.
    expectRefusal(await launch({ args: [...data, ...args], env }).ended, line);
  });

  it.each([
    [{ BERTH_API_KEYS: "ci" }, /^berth: BERTH_API_KEYS must be a list of tenant:/],
    [
      { BERTH_ORIGINS: "app.example.org" },
      /^berth: BERTH_ORIGINS must be a list of origins such as /,
    ],
    [
      { BERTH_SIZES: "small:cores=2" },
      /^berth: BERTH_SIZES must be a list of .*: has no cores, but instance, memoryMib, processes$/,
    ],
  ])(
    "[O10] %j, which only the Worker can read, is refused with one line too",
    async (env, line) => {
      const data = join(folder, "of-the-worker");
      const { stdout, stderr, code } = await launch({ args: ["--data", data], env }).ended;
      expect([stdout, code]).toEqual(["", 1]);
      expect(stderr.trimEnd().split("\n").at(-1)).toMatch(line);
      expect(stderr).not.toMatch(/does not respond|^\s+at /m);
    },
  );

  it("[O10] a port in use is refused with one line", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const data = join(folder, "of-port");
    const ended = await launch({ args: ["--port", String(port), "--data", data] }).ended;
    other.close();
    expectRefusal(
      ended,
      new RegExp(`^berth: 127\\.0\\.0\\.1:${port} is in use by another program\\. .*--port.\\.$`),
    );
    expect(readdirSync(data)).not.toContain("key");
  });

  it("[O10] an address of another machine is refused with one line", async () => {
    const args = ["--host", "192.0.2.1", "--port", "0", "--data", join(folder, "of-host")];
    expectRefusal(
      await launch({ args }).ended,
      /^berth: 192\.0\.2\.1:0 is not an address of this machine\. .*`--host`\.$/,
    );
  });

  it("[O10] a key file that is empty is refused with one line", async () => {
    const data = mkdtempSync(join(folder, "of-key-"));
    writeFileSync(join(data, "key"), "");
    const ended = await launch({ args: ["--port", "0", "--data", data] }).ended;
    expectRefusal(
      ended,
      /key must contain one line of at least 32 printable characters. Remove it/,
    );
  });

  it("[O10] the number of sandboxes follows from the limit on open files", () => {
    expect(sandboxesAt(0)).toBe(0);
    expect(sandboxesAt(1024)).toBe(128);
    expect(sandboxesAt(20_000)).toBeGreaterThan(3000);
  });
});

describe("arguments of npm start", () => {
  it("[O11] a flag overrides the environment, and the environment the default", () => {
    const env = { BERTH_PORT: "2", BERTH_HOST: "::1", BERTH_DATA: "/from/env" };
    expect(parseOptions([], {}, "npm start", "/default")).toMatchObject({
      port: 8787,
      host: "127.0.0.1",
    });
    const fromEnv = { port: 2, host: "::1", data: "/from/env" };
    expect(parseOptions([], env, "npm start", "/default")).toMatchObject(fromEnv);
    const flags = ["--port=0", "--host", "0.0.0.0", "--data", "/flag"];
    const fromFlags = { port: 0, host: "0.0.0.0", data: "/flag" };
    expect(parseOptions(flags, env, "npm start", "/default")).toMatchObject(fromFlags);
  });

  it("[O11] --help names each flag with its variable and default, and starts nothing", async () => {
    const ended = await launch({ args: ["--help"] }).ended;
    expect(ended).toMatchObject({
      stdout: help("npm start", join(root, ".berth")),
      stderr: "",
      code: 0,
    });
    for (const word of ["BERTH_PORT", "BERTH_HOST", "BERTH_DATA", "8787", ".berth"]) {
      expect(ended.stdout).toContain(word);
    }
  });
});
