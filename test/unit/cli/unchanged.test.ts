/** Tests how little a sync does when nothing has changed, and that it misses no change. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pull, syncUp } from "../../../src/cli/sync/sync.ts";
import { Checkout } from "../../system/cli/sync/checkout.ts";
import { FolderSandbox } from "./folder-sandbox.ts";

/** A `git` that writes down where it was called. */
const shim = mkdtempSync(join(tmpdir(), "berth-shim-"));
const log = join(shim, "log");
const usualPath = process.env.PATH ?? "";

beforeAll(() => {
  const git = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  const script = `#!/bin/sh\necho "$PWD" >> '${log}'\nexec '${git}' "$@"\n`;
  writeFileSync(join(shim, "git"), script, { mode: 0o755 });
  process.env.PATH = `${shim}:${usualPath}`;
});
afterAll(() => {
  process.env.PATH = usualPath;
  rmSync(shim, { recursive: true });
});

class Pair implements Disposable {
  readonly checkout = Checkout.begun({ "a.txt": "a\n", "b/c.txt": "c\n", ".gitignore": "made/\n" });
  readonly sandbox = new FolderSandbox();

  /** As `berth exec` does. Returns the calls of git here and in the sandbox. */
  async exec(command: string): Promise<{ here: number; there: number }> {
    writeFileSync(log, "");
    const { baseline } = await syncUp(this.sandbox.handle, this.checkout.root);
    const before = readFileSync(log, "utf8");
    this.sandbox.run(command);
    writeFileSync(log, before);
    await pull(this.sandbox.handle, this.checkout.root, baseline);
    const calls = readFileSync(log, "utf8").trim().split("\n");
    const there = calls.filter((folder) => folder.startsWith(this.sandbox.folder)).length;
    return { here: calls.length - there, there };
  }

  /** What somebody in the sandbox sees of the repository. */
  get seen(): string {
    return this.sandbox.run(
      `export GIT_OPTIONAL_LOCKS=0; git status --porcelain --branch; git log -1 --format=%H; git stash list; git diff --cached
       cat a.txt b/c.txt .git/info/exclude || :; git config core.filemode; ls -A; ls .git/MERGE_HEAD 2>&1 || :; stat -c %a a.txt`,
    );
  }

  [Symbol.dispose](): void {
    this.checkout[Symbol.dispose]();
    this.sandbox[Symbol.dispose]();
  }
}

const changes = [
  "echo other > a.txt",
  "echo new > new.txt",
  "rm b/c.txt",
  "chmod +x a.txt",
  "echo other > a.txt; git add -A; git show :a.txt > a.txt; echo a > a.txt",
  "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m more",
  "git checkout -q -b other",
  "git checkout -q --detach",
  "git rev-parse HEAD > .git/MERGE_HEAD",
  "git config --file .git/berth/settings core.filemode false",
  "echo a.txt > .git/info/exclude",
  "rm .git/index",
];

const few = { here: 11, there: 4 };

describe("[SY36] where nothing has changed", () => {
  it("[SY36] a sync and a fetch take few processes", async () => {
    using pair = new Pair();
    await pair.exec("true");
    await pair.exec("true");
    const { here, there } = await pair.exec("true");
    expect(here).toBeLessThanOrEqual(few.here);
    expect(there).toBe(few.there);
  });

  it("[SY36] every change in the sandbox is undone by the next sync all the same", async () => {
    using pair = new Pair();
    await pair.exec("true");
    await pair.exec("true");
    const before = pair.seen;
    for (const change of changes) {
      // What the check-out before has kept is forgotten by now.
      await pair.exec("true");
      expect((await pair.exec("true")).there, `before ${change}`).toBe(few.there);
      pair.sandbox.run(change);
      expect(pair.seen, change).not.toBe(before);
      await pair.exec("true");
      expect(pair.seen, change).toBe(before);
    }
  });

  it("[SY36] what a command changes is fetched, and a change here is sent", async () => {
    using pair = new Pair();
    await pair.exec("true");
    await pair.exec("true");
    await pair.exec("echo made > made.txt; echo other > a.txt");
    expect(pair.checkout.read("made.txt")).toBe("made\n");
    expect(pair.checkout.read("a.txt")).toBe("other\n");
    pair.checkout.write("a.txt", "mine\n");
    await pair.exec("cat a.txt > copy.txt");
    expect(pair.checkout.read("copy.txt")).toBe("mine\n");
  });
});
