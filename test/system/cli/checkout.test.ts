/**
 * Proves what is read of a checkout and what is written beside it, without a server.
 * Does not prove which sandbox that means (scope.test.ts).
 */
import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync, renameSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readCheckout } from "../../../src/cli/checkout/checkout.ts";
import { Person } from "./cli-user.ts";

const memoryModule = new URL("../../../src/cli/state/local-state.ts", import.meta.url).href;

/** Remembers a sandbox; prints the warnings. */
const remembering = `
  import { Memory } from ${JSON.stringify(memoryModule)};
  const memory = new Memory(JSON.parse(process.argv[1]), { warn: (text) => console.log(text) });
  const id = "a".repeat(24);
  const at = { repo: "id/x", branch: "main", config: "" };
  memory.remember({ id, ...at, createdAt: "2026-01-01T00:00:00Z" });
`;

describe("a checkout", () => {
  let person: Person;
  beforeEach(() => {
    person = new Person();
  });
  afterEach(() => {
    person[Symbol.dispose]();
  });

  it("[CL10] a tag that is called as the branch makes no other sandbox of it", () => {
    const cwd = person.repo("app");
    person.git(cwd, "checkout", "-q", "-b", "rel/1.0");
    person.git(cwd, "tag", "rel/1.0");
    expect(person.git(cwd, "symbolic-ref", "--short", "HEAD")).toBe("heads/rel/1.0\n");
    expect(readCheckout(cwd, true)).toMatchObject({ branch: "rel/1.0", branchKey: "rel/1.0" });
    person.git(cwd, "checkout", "-q", "--detach");
    expect(readCheckout(cwd, true).branch).toBeUndefined();
  });

  /** With a limit on the size of files, in blocks of 512 bytes: a disk without room. */
  const remember = (cwd: string, blocks = "unlimited") => {
    const script = `trap '' XFSZ; ulimit -f ${blocks}; exec "$0" "$@"`;
    const node = [process.execPath, "--input-type=module", "-e", remembering];
    const checkout = JSON.stringify(readCheckout(cwd, true));
    const env = { ...person.environment, NODE_COMPILE_CACHE: "" };
    const ran = spawnSync("sh", ["-c", script, ...node, checkout], { encoding: "utf8", env });
    expect({ status: ran.status, said: ran.stderr }).toEqual({ status: 0, said: "" });
    return ran.stdout;
  };

  it("[CL16] the owner's list of what git ignores keeps his lines where the disk has no room", () => {
    const cwd = person.repo("app");
    const path = join(cwd, ".git/info/exclude");
    appendFileSync(path, "mine\n".repeat(1000));
    const before = readFileSync(path, "utf8");
    expect(remember(cwd, "1")).toMatch(/was not written: EFBIG/);
    expect(readFileSync(path, "utf8")).toBe(before);
    expect(remember(cwd)).toBe("");
    expect(readFileSync(path, "utf8")).toBe(`${before}/.berth/state.*\n`);
    expect(person.git(cwd, "status", "--porcelain", "--untracked-files=all")).not.toMatch(/berth/);
  });

  it("[CL16] the owner's list stays the file that it is, without a line end and behind a link too", () => {
    const cwd = person.repo("app");
    const path = join(cwd, ".git/info/exclude");
    const real = join(person.home, "list");
    renameSync(path, real);
    symlinkSync(real, path);
    appendFileSync(real, "mine");
    const { ino, mode } = statSync(real);
    for (const _ of [1, 2]) expect(remember(cwd)).toBe("");
    expect(readFileSync(real, "utf8")).toMatch(/\nmine\n\/\.berth\/state\.\*\n$/);
    expect(statSync(path)).toMatchObject({ ino, mode });
  });
});
