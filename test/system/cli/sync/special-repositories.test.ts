/** Tests LFS, submodules, nested repositories, shallow clones and worktrees. Refusals come before any call. */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { syncUp } from "../../../../src/cli/sync/sync.ts";
import { Checkout } from "./checkout.ts";
import { expectSynced, useSyncPairs } from "./sync-pair.ts";

const { pairOf, begun } = await useSyncPairs();

/** Any call fails the test. */
const failingHandler: ProxyHandler<object> = {
  get(_, name) {
    throw new Error(`asked for ${String(name)}`);
  },
};
const unreachable = new Proxy({}, failingHandler) as never;

describe("large files (LFS)", () => {
  const lfs = (of: Checkout) => {
    // What git-lfs does as far as it matters here: the content is stored elsewhere, git gets a pointer.
    of.git("config", "filter.lfs.clean", "sed -e s/content/pointer/");
    of.git("config", "filter.lfs.smudge", "sed -e s/pointer/content/");
    of.commit("large", { ".gitattributes": "*.big filter=lfs -text\n", "x.big": "content one\n" });
  };

  it("[SY8] an unchanged file is sent as git stores it", async () => {
    await using pair = await begun();
    lfs(pair.checkout);
    pair.checkout.write("a.txt", "changed\n");
    await pair.sync();
    expect(await pair.there("cat x.big a.txt")).toBe("pointer one\nchanged\n");
    expect((await pair.seen()).status).toBe(pair.checkout.seen().status);
    expect(pair.checkout.read("x.big")).toBe("content one\n");
  });

  const changes: [title: string, change: (of: Checkout) => void][] = [
    ["[SY8] a changed file is refused", (of) => of.write("x.big", "content two\n")],
    [
      "[SY8] a changed and staged file is refused",
      (of) => {
        of.write("x.big", "content two\n");
        of.git("add", "x.big");
      },
    ],
    ["[SY8] a new file is refused", (of) => of.write("new x.big", "content new\n")],
  ];
  for (const [title, change] of changes) {
    it(`${title} by name, before any call`, async () => {
      using of = Checkout.begun();
      lfs(of);
      change(of);
      await expect(syncUp(unreachable, of.root)).rejects.toMatchObject({
        code: "lfs_changed",
        message: expect.stringMatching(/x\.big/),
        hint: expect.stringMatching(/berth cp/),
      });
    });
  }

  it("[SY8] a removed file is removed there", async () => {
    await using pair = await begun();
    lfs(pair.checkout);
    pair.checkout.remove("x.big");
    await expectSynced(pair);
  });
});

describe("special repositories", () => {
  it("[SY9] sends submodules, with their files or empty", async () => {
    await using pair = await begun();
    const of = pair.checkout;
    using module = Checkout.begun({ "in/module": "m\n" });
    const add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q", module.root];
    of.git(...add, "filled");
    of.git(...add, "empty");
    of.commit("modules");
    of.git("submodule", "deinit", "-q", "-f", "empty");
    await expectSynced(pair);
    of.write("filled/in/module", "changed\n");
    of.write("filled/new", "new\n");
    expect(of.seen().status).toMatch(/S\.MU .*filled/);
    await expectSynced(pair);
    const module2 = join(of.root, "filled");
    of.gitAt(module2, "add", "-A");
    of.gitAt(module2, "commit", "-q", "-m", "inside");
    expect(of.seen().status).toMatch(/SC\.\. .*filled/);
    await expectSynced(pair);
    expect(await pair.there("cat filled/in/module; ls -A empty")).toBe("changed\n");
    const synced = await pair.sync();
    await pair.there("echo there > filled/in/module; echo top > top");
    expect((await pair.pull(synced)).changed).toEqual(["top", "filled/in/module"]);
    expect(of.read("filled/in/module")).toBe("there\n");
    const commit = "git -c user.name=x -c user.email=x@example.com commit -qam there";
    const committing = await pair.sync();
    await pair.there(`cd filled; ${commit}; cd ..; ${commit}`);
    expect((await pair.pull(committing)).newCommits).toBe(2);
    expect(await pair.pull(await pair.sync())).not.toHaveProperty("newCommits");
  });

  it("[SY20] files come back even if the sandbox's HEAD has missing parents", async () => {
    await using pair = await begun();
    const commit = "git -c user.name=x -c user.email=x@y commit -q --allow-empty -m";
    const other = `git init -q ~/other; (cd ~/other; ${commit} one; ${commit} two)`;
    const first = await pair.sync();
    await pair.there(`${other}; git fetch -q --depth=1 "file://$HOME/other" HEAD`);
    await pair.pull(first);
    const synced = await pair.sync();
    await pair.there("rm -f .git/shallow; git checkout -q --detach FETCH_HEAD; echo there > back");
    const { changed, newCommits } = await pair.pull(synced);
    expect(changed).toContain("back");
    expect(newCommits).toBe(0);
  });

  it("[SY9] sends a nested repository, and removes it with its folder once it has no commits of its own", async () => {
    await using pair = await begun();
    const of = pair.checkout;
    of.gitAt(of.root, "init", "-q", "inner");
    of.write("inner/x", "x\n");
    expect(of.seen().status).toMatch(/\? inner\//);
    await expectSynced(pair);
    expect(await pair.there("cat inner/x")).toBe("x\n");
    // It has no commit until a command makes the first one.
    const synced = await pair.sync();
    await pair.there("cd inner; git -c user.name=x -c user.email=x@y commit -qm x --allow-empty");
    expect((await pair.pull(synced)).newCommits).toBe(1);
    of.remove("inner");
    expect((await pair.sync()).news).toMatchObject([{ left: ["inner"] }]);
    await pair.there("git -C inner update-ref -d HEAD");
    await expectSynced(pair);
  });

  it("[SY10] sends a shallow clone, and again after it was unshallowed", async () => {
    using origin = Checkout.begun();
    for (const text of ["two", "three", "four"]) {
      origin.commit(text, { "a.txt": `${text}\n` });
    }
    const clone = new Checkout();
    clone.gitAt(clone.folder, "clone", "-q", "--depth=2", `file://${origin.root}`, "code");
    await using pair = await pairOf(clone);
    clone.write("a.txt", "changed\n");
    await expectSynced(pair);
    expect((await pair.there("git log --format=%s")).split("\n")).toEqual(["four", "three", ""]);
    clone.git("fetch", "-q", "--unshallow");
    await expectSynced(pair);
    expect(await pair.there("git log --format=%s")).toMatch(/^four\nthree\ntwo\n/);
    expect(await pair.there("git fsck --full 2>&1 | grep -v dangling || true")).toBe("");
  });

  it("[SY10] sends a linked worktree from any of its folders", async () => {
    const of = Checkout.begun();
    of.git("worktree", "add", "-q", "-b", "linked", "../linked");
    const linked = new Checkout("linked", of.folder);
    await using pair = await pairOf(linked);
    linked.write("a.txt", "linked\n");
    linked.write("b/new", "new\n");
    await pair.sync(join(linked.root, "b"));
    expect(await pair.seen()).toEqual(linked.seen());
    expect(await pair.there("git branch --show-current")).toBe("linked\n");
    expect(await pair.there("git rev-parse HEAD")).toBe(of.git("rev-parse", "HEAD"));
    expect(existsSync(join(of.root, ".git", "worktrees", "linked", "berth"))).toBe(true);
  });

  it("[SY14] the owner's repository does not change, and none of the owner's programs runs", async () => {
    await using pair = await begun();
    const of = pair.checkout;
    const ran = join(of.folder, "ran");
    for (const hook of ["post-index-change", "reference-transaction", "post-checkout"]) {
      of.write(`.git/hooks/${hook}`, `#!/bin/sh\necho ${hook} >> ${ran}\n`, 0o755);
    }
    of.git("config", "core.fsmonitor", `${of.root}/.git/hooks/post-checkout`);
    of.write("a.txt", "changed\n");
    of.git("add", "a.txt");
    of.write("a.txt", "changed again\n");
    const proof = () => {
      const index = readFileSync(join(of.root, ".git", "index")).toString("base64");
      return { index, refs: of.git("for-each-ref"), objects: of.git("count-objects") };
    };
    const before = proof();
    expect(existsSync(ran)).toBe(true);
    const said = readFileSync(ran, "utf8");
    process.env.GIT_DIR = "/nowhere";
    process.env.GIT_INDEX_FILE = "/nowhere";
    try {
      const synced = await pair.sync();
      expect(synced.sentBytes).toBeGreaterThan(0);
      await pair.pull(synced);
    } finally {
      delete process.env.GIT_DIR;
      delete process.env.GIT_INDEX_FILE;
    }
    expect(proof()).toEqual(before);
    expect(readFileSync(ran, "utf8")).toBe(said);
    expect(await pair.there("git status --porcelain")).toBe("MM a.txt\n");
  });

  it("[SY15] outside of a checkout it fails before any call", async () => {
    using of = new Checkout();
    const expected = { code: "no_checkout", hint: expect.stringMatching(/checkout/) };
    await expect(syncUp(unreachable, of.root)).rejects.toMatchObject(expected);
    expect(realpathSync(of.root)).toBe(of.root);
  });

  it("[SY15] a sandbox without git is reported, with another image as the next step", async () => {
    using of = Checkout.begun();
    const result = { exitCode: 127, stdout: "", stderr: "", truncated: false };
    const bare = { exec: async () => result } as never;
    const expected = { code: "no_git", hint: expect.stringMatching(/image/) };
    await expect(syncUp(bare, of.root)).rejects.toMatchObject(expected);
  });
});
