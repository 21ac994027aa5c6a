import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/cli/checkout/config.ts";
import { Failure } from "../../../src/cli/failure.ts";

describe("the configuration of a checkout", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "berth-config-"));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  const read = (asked?: string, cwd = root) => readConfig(root, cwd, asked);
  const failure = (asked?: string) => {
    try {
      read(asked);
    } catch (thrown) {
      if (thrown instanceof Failure) return `${thrown.message} | ${thrown.hint}`;
      throw thrown;
    }
    throw new Error("it was taken");
  };

  const asJson = {
    image: "default",
    size: "small",
    cwd: "app",
    env: { NODE_ENV: "test", EMPTY: "" },
    setup: ["npm ci", "npm run build"],
    idleTimeoutMs: 60_000,
    onIdle: "pause",
    network: { internet: false },
    ports: [3000],
  };
  const asToml = `
    # The same, in another order.
    ports = [ 3000 ]
    onIdle = "pause"
    idleTimeoutMs = 60_000
    setup = ["npm ci", "npm run build"]
    cwd = 'app'
    image = "default"
    size = "small"
    [network]
    internet = false
    [env]
    EMPTY = ""
    NODE_ENV = "test"
  `;

  it("[CL18] says the same as JSON and as TOML, and has one hash for it however it is written", () => {
    write(".berth/sandbox.json", JSON.stringify(asJson));
    const json = read();
    expect(json).toMatchObject({ file: ".berth/sandbox.json", scope: "", content: asJson });
    rmSync(join(root, ".berth"), { recursive: true });
    write(".berth/sandbox.toml", asToml);
    const toml = read();
    expect(toml).toEqual({ ...json, file: ".berth/sandbox.toml" });
    expect(toml.hash).toMatch(/^[0-9a-f]{16}$/);
    write(".berth/sandbox.toml", asToml.replace("3000", "3001"));
    expect(read().hash).not.toBe(toml.hash);
  });

  it("[CL18] is the usual file, another one by its place in the repository, or none", () => {
    expect(read()).toEqual({ file: undefined, scope: "", content: {}, hash: undefined });
    write("ci/sandbox.json", "{}");
    write("ci/deep/.keep", "");
    const named = { file: "ci/sandbox.json", scope: "ci/sandbox.json", content: {} };
    expect(read("ci/sandbox.json")).toMatchObject(named);
    expect(read("../sandbox.json", join(root, "ci/deep"))).toMatchObject(named);
    expect(read(join(root, "ci/sandbox.json"))).toMatchObject(named);
    write(".berth/sandbox.json", "{}");
    expect(read(".berth/sandbox.json")).toEqual(read());
  });

  it.each([
    ["{", /^\.berth\/sandbox\.json is not JSON: .+ \| /],
    ["[]", /^\.berth\/sandbox\.json: .*expected object/],
    ['{"imgae":"x"}', /: there is no `imgae` \| It may hold image, size, cwd, env, /],
    ['{"network":{"internet":true,"alow":["a"]}}', /: network: there is no `alow` \| /],
    ['{"env":{"1A":"x"}}', /: env\.1A: /],
    ['{"env":{"A":1}}', /: env\.A: /],
    ['{"setup":"npm ci"}', /: setup: .*expected array/],
    ['{"ports":[70000]}', /: ports\.0: /],
    ['{"idleTimeoutMs":1}', /: idleTimeoutMs: /],
    ['{"onIdle":"sleep"}', /: onIdle: /],
  ])("[CL19] %s is refused with the place of the fault", (written, words) => {
    write(".berth/sandbox.json", written);
    expect(failure()).toMatch(words);
  });

  it("[CL19] TOML that is none, two files, one outside and one that is not there are refused", () => {
    write(".berth/sandbox.toml", "image = ");
    expect(failure()).toMatch(/^\.berth\/sandbox\.toml is not TOML: /);
    write(".berth/sandbox.json", "{}");
    expect(failure()).toMatch(
      /^there are both \.berth\/sandbox\.json and \.berth\/sandbox\.toml \| Keep one/,
    );
    expect(failure("../outside.json")).toMatch(/^--config: there is no file/);
    writeFileSync(`${root}-outside.json`, "{}");
    expect(failure(`${root}-outside.json`)).toMatch(/lies outside of the checkout \| /);
    rmSync(`${root}-outside.json`);
  });
});
