/** Tests what the command reads of a checkout and what it writes next to it, without a server. */
import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync, renameSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readCheckout } from "../../../src/cli/checkout/checkout.ts";
import { CliUser } from "./cli-user.ts";

const localStateModule = new URL("../../../src/cli/state/local-state.ts", import.meta.url).href;

/** Records a sandbox; prints the warnings. */
const recordScript = `
  import { LocalState } from ${JSON.stringify(localStateModule)};
  const state = new LocalState(JSON.parse(process.argv[1]), { warn: (text) => console.log(text) });
  const id = "a".repeat(24);
  const scope = { repo: "id/x", branch: "main", config: "" };
  state.remember({ id, ...scope, createdAt: "2026-01-01T00:00:00Z" });
`;

let user: CliUser;
beforeEach(() => {
  user = new CliUser();
});
afterEach(() => {
  user[Symbol.dispose]();
});

it("[CL10] a tag with the name of the branch does not lead to another sandbox", () => {
  const cwd = user.repo("app");
  user.git(cwd, "checkout", "-q", "-b", "rel/1.0");
  user.git(cwd, "tag", "rel/1.0");
  expect(user.git(cwd, "symbolic-ref", "--short", "HEAD")).toBe("heads/rel/1.0\n");
  expect(readCheckout(cwd, true)).toMatchObject({ branch: "rel/1.0", branchKey: "rel/1.0" });
  user.git(cwd, "checkout", "-q", "--detach");
  expect(readCheckout(cwd, true).branch).toBeUndefined();
});

/** Limits the size of files, in blocks of 512 bytes, to act as a full disk. */
const record = (cwd: string, blocks = "unlimited") => {
  const script = `trap '' XFSZ; ulimit -f ${blocks}; exec "$0" "$@"`;
  const node = [process.execPath, "--input-type=module", "-e", recordScript];
  const checkout = JSON.stringify(readCheckout(cwd, true));
  const env = { ...user.environment, NODE_COMPILE_CACHE: "" };
  const result = spawnSync("sh", ["-c", script, ...node, checkout], { encoding: "utf8", env });
  expect({ status: result.status, stderr: result.stderr }).toEqual({ status: 0, stderr: "" });
  return result.stdout;
};

it("[CL16] the owner's exclude file keeps its lines when the disk is full", () => {
  const cwd = user.repo("app");
  const path = join(cwd, ".git/info/exclude");
  appendFileSync(path, "mine\n".repeat(1000));
  const before = readFileSync(path, "utf8");
  expect(record(cwd, "1")).toMatch(/was not written: EFBIG/);
  expect(readFileSync(path, "utf8")).toBe(before);
  expect(record(cwd)).toBe("");
  expect(readFileSync(path, "utf8")).toBe(`${before}/.berth/state.*\n`);
  expect(user.git(cwd, "status", "--porcelain", "--untracked-files=all")).not.toMatch(/berth/);
});

it("[CL16] the owner's exclude file stays the same file, without a final line end and behind a link too", () => {
  const cwd = user.repo("app");
  const path = join(cwd, ".git/info/exclude");
  const real = join(user.home, "list");
  renameSync(path, real);
  symlinkSync(real, path);
  appendFileSync(real, "mine");
  const { ino, mode } = statSync(real);
  for (const _ of [1, 2]) expect(record(cwd)).toBe("");
  expect(readFileSync(real, "utf8")).toMatch(/\nmine\n\/\.berth\/state\.\*\n$/);
  expect(statSync(path)).toMatchObject({ ino, mode });
});
