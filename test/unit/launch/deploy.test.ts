/** What `npm run deploy` checks, makes and prints, without an account. */
import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { addressIn } from "../../../container/launch/deploy.js";
import { checkDeployment } from "../../../container/launch/deploy-checks.js";
import { makeSecrets, readSecrets } from "../../../container/launch/deploy-secrets.js";
import { lockByName } from "../../../container/launch/lock.js";
import { root } from "../../../container/launch/paths.js";
import { newFolder } from "../../new-folder.ts";

const fine = { ok: true, output: "" };

/** Every tool works, except these. */
const toolsWith = (broken: Record<string, { ok: boolean; output: string }>) => {
  const calls: string[] = [];
  const run = (program: string, args: string[]) => {
    const line = [program, ...args].join(" ");
    calls.push(line);
    return broken[line] ?? fine;
  };
  return { run, calls };
};

describe("the checks of a deployment", () => {
  it("[CF9] names nothing where Docker, login and plan are there", () => {
    const { run, calls } = toolsWith({});
    expect(checkDeployment(run, { needsAccount: true })).toEqual([]);
    expect(calls).toEqual(["docker info", "wrangler whoami", "wrangler containers list"]);
  });

  it.each([
    ["docker info", { ok: false, output: "" }, "Docker", "Start Docker"],
    [
      "wrangler whoami",
      { ok: true, output: "You are not authenticated." },
      "not logged in",
      "login",
    ],
    [
      "wrangler containers list",
      { ok: false, output: "Unauthorized" },
      "cannot use containers",
      "Paid plan",
    ],
  ])(
    "[CF9] names what `%s` lacks, with the command that repairs it",
    (tool, answer, what, remedy) => {
      const { run } = toolsWith({ [tool]: answer });
      const problems = checkDeployment(run, { needsAccount: true });
      expect(problems).toHaveLength(1);
      expect(problems[0]?.what).toContain(what);
      expect(problems[0]?.remedy).toContain(remedy);
    },
  );

  it("[CF9] needs nothing for a dry run", () => {
    expect(checkDeployment(toolsWith({}).run, { needsAccount: false })).toEqual([]);
  });
});

describe("the secrets of a deployment", () => {
  it("[CF10] are made once, in a file for its owner alone, without the key", () => {
    const file = join(newFolder("secrets"), "folder", "cloudflare.env");
    expect(readSecrets(file)).toBeUndefined();
    const { key } = makeSecrets(file);
    const secrets = readSecrets(file);
    const hash = createHash("sha256").update(key).digest("hex");
    expect(secrets?.BERTH_API_KEYS).toBe(`main:${hash}`);
    expect(readFileSync(file, "utf8")).not.toContain(key);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(secrets?.BERTH_SECRET).toMatch(/^[0-9a-f]{64}$/);
    expect(() => makeSecrets(file)).toThrow("EEXIST");
    writeFileSync(file, "BERTH_SECRET=abc\n");
    expect(() => readSecrets(file)).toThrow("has no BERTH_API_KEYS");
  });

  it("[CF10] are where git looks away", () => {
    const ignored = readFileSync(join(root, ".gitignore"), "utf8");
    expect(ignored.split("\n")).toContain(".berth/");
  });

  it("[CF9] finds the address in wrangler's report", () => {
    const file = join(newFolder("report"), "output.json");
    const lines = [
      { type: "wrangler-session", version: 1 },
      { type: "deploy", targets: ["https://berth.example.workers.dev"] },
    ];
    writeFileSync(file, lines.map((line) => JSON.stringify(line)).join("\n"));
    expect(addressIn(file)).toBe("https://berth.example.workers.dev");
  });
});

describe("the lock of a machine without flock", () => {
  it("[CF9] is held by one living process at a time", () => {
    const path = join(newFolder("lock"), "lock");
    const first = lockByName(path, 0);
    expect(lockByName(path, 0)).toEqual({ heldBy: String(process.pid) });
    if ("release" in first) first.release();
    writeFileSync(`${path}.pid`, "999999999");
    expect(lockByName(path, 1_000)).toHaveProperty("release");
  });
});
