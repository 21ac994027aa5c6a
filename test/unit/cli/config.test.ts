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
  const read = (given?: string, cwd = root) => readConfig(root, cwd, given);
  const failure = async (given?: string) => {
    try {
      await read(given);
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

  it("[CL18] says the same as JSON and as TOML, and has one hash for it however it is written", async () => {
    write(".berth/sandbox.json", JSON.stringify(asJson));
    const json = await read();
    expect(json).toMatchObject({ file: ".berth/sandbox.json", scope: "", content: asJson });
    rmSync(join(root, ".berth"), { recursive: true });
    write(".berth/sandbox.toml", asToml);
    const toml = await read();
    expect(toml).toEqual({ ...json, file: ".berth/sandbox.toml" });
    expect(toml.hash).toMatch(/^[0-9a-f]{16}$/);
    write(".berth/sandbox.toml", asToml.replace("3000", "3001"));
    expect((await read()).hash).not.toBe(toml.hash);
  });

  it("[CL18] is the default file, another one by its path in the repository, or none", async () => {
    expect(await read()).toEqual({ file: undefined, scope: "", content: {}, hash: undefined });
    write("ci/sandbox.json", "{}");
    write("ci/deep/.keep", "");
    const expected = { file: "ci/sandbox.json", scope: "ci/sandbox.json", content: {} };
    expect(await read("ci/sandbox.json")).toMatchObject(expected);
    expect(await read("../sandbox.json", join(root, "ci/deep"))).toMatchObject(expected);
    expect(await read(join(root, "ci/sandbox.json"))).toMatchObject(expected);
    write(".berth/sandbox.json", "{}");
    expect(await read(".berth/sandbox.json")).toEqual(await read());
  });

  it.each([
    ["{", /^\.berth\/sandbox\.json is not valid JSON: .+ \| /],
    ["[]", /^\.berth\/sandbox\.json: .*expected object/],
    [
      '{"imgae":"x"}',
      /: unknown field `imgae`\. \| The possible fields are image, size, cwd, env, /,
    ],
    ['{"network":{"internet":true,"alow":["a"]}}', /: network: unknown field `alow`\. \| /],
    ['{"env":{"1A":"x"}}', /: env\.1A: /],
    ['{"env":{"A":1}}', /: env\.A: /],
    ['{"setup":"npm ci"}', /: setup: .*expected array/],
    ['{"ports":[70000]}', /: ports\.0: /],
    ['{"idleTimeoutMs":1}', /: idleTimeoutMs: /],
    ['{"onIdle":"sleep"}', /: onIdle: /],
  ])("[CL19] %s is refused with the path of the error", async (text, message) => {
    write(".berth/sandbox.json", text);
    expect(await failure()).toMatch(message);
  });

  it("[CL19] invalid TOML, two files, a file outside and a missing file are refused", async () => {
    write(".berth/sandbox.toml", "image = ");
    expect(await failure()).toMatch(/^\.berth\/sandbox\.toml is not valid TOML: /);
    write(".berth/sandbox.json", "{}");
    expect(await failure()).toMatch(
      /^Both \.berth\/sandbox\.json and \.berth\/sandbox\.toml exist\. \| Keep one/,
    );
    expect(await failure("../outside.json")).toMatch(
      /^`--config`: \.\.\/outside\.json does not exist\./,
    );
    writeFileSync(`${root}-outside.json`, "{}");
    expect(await failure(`${root}-outside.json`)).toMatch(/is outside of the checkout\. \| /);
    rmSync(`${root}-outside.json`);
  });
});
