/** Tests that a sync keeps what only the sandbox has, before it replaces or removes it. */
import { describe, expect, it } from "vitest";
import { diffTrees } from "../../../src/cli/sync/fetch-changes.ts";
import { findKept } from "../../../src/cli/sync/kept-work.ts";
import { acceptChanges } from "../../../src/cli/sync/pull.ts";
import { pullNow } from "../../../src/cli/sync/pull-now.ts";
import { openRepository } from "../../../src/cli/sync/repository.ts";
import { pull, type Synced, syncUp } from "../../../src/cli/sync/sync.ts";
import { Checkout } from "../../system/cli/sync/checkout.ts";
import { FolderSandbox } from "./folder-sandbox.ts";

class Pair implements Disposable {
  readonly checkout = Checkout.begun({ "a.txt": "a\n", "b/c.txt": "c\n", ".gitignore": "made/\n" });
  readonly sandbox = new FolderSandbox();

  sync(restoredAt?: string): Promise<Synced> {
    return syncUp(this.sandbox.handle, this.checkout.root, { restoredAt });
  }

  /** As `berth exec` does: send, run, fetch. */
  async exec(command: string): Promise<Synced> {
    const synced = await this.sync();
    this.sandbox.run(command);
    await pull(this.sandbox.handle, this.checkout.root, synced.baseline);
    return synced;
  }

  /** A file of what was kept under this number; `^1` is what both sides agreed on. */
  async keptFile(number: number, path: string, parent = ""): Promise<string> {
    const { raw } = await openRepository(this.checkout.root);
    return await raw.text(["show", `refs/berth/kept/${number}${parent}:${path}`]);
  }

  [Symbol.dispose](): void {
    this.checkout[Symbol.dispose]();
    this.sandbox[Symbol.dispose]();
  }
}

const paths = ({ news }: Synced) => news.flatMap(({ kept }) => kept.map((work) => work.paths));

describe("[SY30] what only the sandbox has is kept before a sync replaces it", () => {
  it("[SY30] new, changed, staged and removed files of a terminal", async () => {
    using pair = new Pair();
    await pair.exec("true");
    pair.checkout.write("mine.txt", "mine\n");
    await pair.exec("echo x > fetched.txt");
    pair.sandbox.run("echo new > new.txt; echo changed > a.txt; rm b/c.txt; git add -A");
    const synced = await pair.sync();
    expect(paths(synced)).toEqual([["a.txt", "b/c.txt", "new.txt"]]);
    expect(await pair.keptFile(1, "new.txt")).toBe("new");
    expect(await pair.keptFile(1, "a.txt")).toBe("changed");
    expect(pair.sandbox.run("cat a.txt b/c.txt; ls")).toBe(
      "a\nc\na.txt\nb\nfetched.txt\nmine.txt\n",
    );
    // It is reported once, and the sandbox needs its copy no longer.
    expect(paths(await pair.sync())).toEqual([]);
    expect(pair.sandbox.run("git --git-dir=.git/berth for-each-ref refs/berth/kept")).toBe("");
  });

  it("[SY30] nothing is kept of what was fetched, undone here, or is the same here", async () => {
    using pair = new Pair();
    await pair.exec("echo one > made.txt; echo changed > a.txt");
    expect(pair.checkout.read("a.txt")).toBe("changed\n");
    pair.checkout.remove("made.txt");
    pair.checkout.write("a.txt", "again\n");
    expect(paths(await pair.exec("touch a.txt; echo same > same.txt"))).toEqual([]);
    expect(paths(await pair.sync())).toEqual([]);
    pair.sandbox.run(
      "echo here > both.txt; echo ignored > made; rm made; mkdir made; echo i > made/x",
    );
    pair.checkout.write("both.txt", "here\n");
    expect(paths(await pair.sync())).toEqual([]);
    expect(pair.sandbox.run("cat made/x")).toBe("i\n");
  });

  it("[SY30] what a command left that was run without a fetch", async () => {
    using pair = new Pair();
    await pair.exec("true");
    await pair.sync();
    pair.sandbox.run("echo result > result.txt");
    expect(paths(await pair.sync())).toEqual([["result.txt"]]);
    // The same work again has the same number.
    pair.sandbox.run("echo result > result.txt");
    const repeated = await pair.sync();
    expect(repeated.news[0]?.kept[0]).toMatchObject({ number: 1, paths: ["result.txt"] });
  });

  it("[SY30] a file that stood in the way of the first sync", async () => {
    using pair = new Pair();
    pair.sandbox.run("echo there > a.txt; echo other > other.txt; echo c > b");
    expect(paths(await pair.sync())).toEqual([["a.txt", "b", "b/c.txt"]]);
    expect(await pair.keptFile(1, "a.txt")).toBe("there");
    expect(pair.sandbox.run("cat a.txt other.txt")).toBe("a\nother\n");
  });

  it("[SY30] an ignored file that a sent one replaces, and files that are no longer ignored", async () => {
    using pair = new Pair();
    await pair.exec("true");
    pair.sandbox.run("mkdir made; echo x > made/x; echo y > made/y");
    pair.checkout.write(".gitignore", "");
    pair.checkout.write("made/x", "mine\n");
    const synced = await pair.sync();
    expect(paths(synced).flat().sort()).toEqual(["made/x", "made/y"]);
    expect(pair.sandbox.run("cat made/x; ls made")).toBe("mine\nx\n");
  });

  it("[SY30] commits of the sandbox with their messages", async () => {
    using pair = new Pair();
    await pair.exec("true");
    pair.sandbox.run(`git config user.email a@b.c; git config user.name a
      echo one > one.txt; git add -A; git commit -qm "one inside"
      echo two > two.txt; git add -A; git commit -qm "two inside"; echo three > three.txt`);
    const { news } = await pair.sync();
    expect(news[0]?.kept).toMatchObject([
      { number: 1, commits: 2, paths: ["one.txt", "three.txt", "two.txt"] },
    ]);
    const { raw } = await openRepository(pair.checkout.root);
    const log = await raw.text(["log", "--format=%s", "-2", "refs/berth/kept/1^2"]);
    expect(log).toBe("two inside\none inside");
    expect((await pair.sync()).news).toEqual([]);
  });

  it("[SY30] commits with the same files as earlier work that was kept without commits", async () => {
    using pair = new Pair();
    await pair.exec("true");
    pair.sandbox.run("echo work > a.txt");
    await pair.sync();
    pair.sandbox.run("echo work > a.txt; git -c user.name=a -c user.email=a@b commit -qam work");
    const { news } = await pair.sync();
    expect(news[0]?.kept).toMatchObject([{ number: 2, commits: 1, paths: ["a.txt"] }]);
  });

  it("[SY30] commits of the branch while HEAD is elsewhere, and those of HEAD", async () => {
    using pair = new Pair();
    pair.checkout.commit("the second one");
    await pair.exec("true");
    pair.sandbox.run(`git config user.email a@b.c; git config user.name a
      git commit -q --allow-empty -m "on the branch"; git checkout -q HEAD~2
      git commit -q --allow-empty -m "on none"`);
    expect((await pair.sync()).news[0]?.kept).toMatchObject([{ commits: 2, paths: [] }]);
    const { raw } = await openRepository(pair.checkout.root);
    const range = ["refs/berth/kept/1^@", "^refs/berth/kept/1^1", "^refs/berth/state^1"];
    const log = await raw.text(["log", "--format=%s", ...range]);
    expect(log.split("\n").sort()).toEqual(["on none", "on the branch"]);
    pair.sandbox.run(
      `git commit -q --allow-empty -m "again on the branch"; git checkout -q HEAD~1`,
    );
    expect((await pair.sync()).news[0]?.kept).toMatchObject([{ commits: 1 }]);
  });

  it("[SY31] a repository that a command made stays, and one that is in the way is moved aside", async () => {
    using pair = new Pair();
    await pair.exec("git init -q other; echo x > other/x; git init -q block; echo y > block/y");
    pair.checkout.write("c.txt", "c\n");
    expect((await pair.sync()).news).toEqual([]);
    expect(pair.sandbox.run("cat other/x block/y")).toBe("x\ny\n");
    pair.checkout.write("block", "a file\n");
    const { news } = await pair.sync();
    const [aside = ""] = news[0]?.aside ?? [];
    expect(pair.sandbox.run(`cat block other/x ${aside}/y`)).toBe("a file\nx\ny\n");
  });

  it("[SY31] a nested repository that was removed here stays there while it has work of its own", async () => {
    using pair = new Pair();
    const of = pair.checkout;
    for (const name of ["lib", "old"]) {
      of.git("init", "-q", name);
      of.write(`${name}/x.txt`, "x\n");
    }
    await pair.exec("true");
    pair.sandbox.run("echo work > lib/work.txt");
    of.remove("lib");
    of.remove("old");
    const { news } = await pair.sync();
    expect(news).toMatchObject([{ left: ["lib"], kept: [] }]);
    expect(pair.sandbox.run("ls; cat lib/work.txt")).toBe("a.txt\nb\nlib\nwork\n");
  });

  it("[SY31] one that stayed is removed when its work has gone, and stays while another was made in it", async () => {
    using pair = new Pair();
    const of = pair.checkout;
    for (const name of ["lib", "old"]) {
      of.git("init", "-q", name);
      of.write(`${name}/x.txt`, "x\n");
    }
    await pair.exec("true");
    pair.sandbox.run("echo work > lib/work.txt; git init -q old/inside; echo y > old/inside/y");
    // Ignored here, they stay there; not ignored any more, they are ones that the checkout does not have.
    of.write(".gitignore", "/lib/\n/old/\n");
    await pair.sync();
    of.remove("lib");
    of.remove("old");
    of.remove(".gitignore");
    await pair.sync();
    expect(pair.sandbox.run("cat lib/work.txt old/inside/y")).toBe("work\ny\n");
    pair.sandbox.run("rm lib/work.txt");
    await pair.sync();
    expect(pair.sandbox.run("ls; cat old/inside/y")).toBe("a.txt\nb\nold\ny\n");
    pair.sandbox.run("rm -r old/inside");
    await pair.sync();
    expect(pair.sandbox.run("ls")).toBe("a.txt\nb\n");
  });

  it("[SY32] a restored checkpoint is kept before the next sync replaces its files", async () => {
    using pair = new Pair();
    await pair.exec("echo old > a.txt; echo more > more.txt");
    await pair.sync();
    const saved = `${pair.sandbox.folder}/saved`;
    pair.sandbox.run(`cp -a . ${saved}`);
    pair.checkout.write("a.txt", "newer\n");
    pair.checkout.remove("more.txt");
    await pair.sync();
    pair.sandbox.run(`find . -mindepth 1 -delete; cp -a ${saved}/. .`);
    const synced = await pair.sync("2026-01-01T00:00:00.000Z");
    expect(paths(synced)).toEqual([["a.txt", "more.txt"]]);
    expect(await pair.keptFile(1, "a.txt")).toBe("old");
    expect(await pair.keptFile(1, "a.txt", "^1")).toBe("newer");
    expect((await pair.sync("2026-01-01T00:00:00.000Z")).news).toEqual([]);
  });

  it("[SY33] pull fetches on demand what was changed, and nothing is kept of it", async () => {
    using pair = new Pair();
    const of = pair.checkout;
    await expect(pullNow(pair.sandbox.handle, of.root, {})).rejects.toThrow("never sent");
    await pair.exec("true");
    of.write("both.txt", "here\n");
    pair.sandbox.run("echo new > new.txt; echo there > both.txt; rm b/c.txt");
    const pulled = await pullNow(pair.sandbox.handle, of.root, {});
    expect(pulled).toMatchObject({
      changed: ["b/c.txt", "new.txt"],
      conflicts: [{ path: "both.txt", savedAs: "both.txt.from-sandbox" }],
    });
    expect(of.contents("new.txt", "b/c.txt", "both.txt")).toEqual(["new\n", undefined, "here\n"]);
    expect(await pullNow(pair.sandbox.handle, of.root, {})).toMatchObject({ changed: [] });
    expect((await pair.sync()).news).toEqual([]);
  });

  it("[SY33] pull brings the files of a restored checkpoint, and keeps local changes", async () => {
    using pair = new Pair();
    const of = pair.checkout;
    await pair.exec("echo old > a.txt; echo more > more.txt");
    const saved = `${pair.sandbox.folder}/saved`;
    pair.sandbox.run(`cp -a . ${saved}`);
    of.write("a.txt", "newer\n");
    of.write("b/c.txt", "newer\n");
    of.remove("more.txt");
    await pair.sync();
    pair.sandbox.run(`find . -mindepth 1 -delete; cp -a ${saved}/. .`);
    of.write("b/c.txt", "newest\n");
    const restoredAt = "2026-01-01T00:00:00.000Z";
    const pulled = await pullNow(pair.sandbox.handle, of.root, { restoredAt });
    expect(pulled.changed).toEqual(["a.txt", "more.txt"]);
    expect(of.contents("a.txt", "b/c.txt", "b/c.txt.from-sandbox")).toEqual([
      "old\n",
      "newest\n",
      "c\n",
    ]);
    expect((await pair.sync(restoredAt)).news).toEqual([]);
  });

  it("[SY33] pull overwrites nothing here after another checkout has sent to the same sandbox", async () => {
    using pair = new Pair();
    using other = Checkout.begun({ "theirs.txt": "theirs\n" });
    const of = pair.checkout;
    of.write("a.txt", "edited here\n");
    of.write("new.txt", "new here\n");
    await pair.exec("true");
    const { baseline } = await syncUp(pair.sandbox.handle, other.root);
    await pull(pair.sandbox.handle, other.root, baseline);
    const pulled = await pullNow(pair.sandbox.handle, of.root, {});
    expect(pulled).toMatchObject({ changed: ["theirs.txt"], kept: [] });
    expect(of.contents("a.txt", "new.txt")).toEqual(["edited here\n", "new here\n"]);
  });

  it("[SY30] kept work is applied to the checkout as changes of a command are", async () => {
    using pair = new Pair();
    const of = pair.checkout;
    await pair.exec("true");
    pair.sandbox.run("echo new > new.txt; echo there > a.txt");
    await pair.sync();
    of.write("a.txt", "here\n");
    const repository = await openRepository(of.root);
    const { commit = "" } = (await findKept(repository, 1)) ?? {};
    const applied = await acceptChanges(
      repository,
      await diffTrees(repository, `${commit}^1`, commit),
    );
    expect(applied).toMatchObject({ changed: ["new.txt"], conflicts: [{ path: "a.txt" }] });
    expect(of.contents("a.txt", "a.txt.from-sandbox")).toEqual(["here\n", "there\n"]);
  });

  it("[SY30] work next to the lock of a git that was killed in a commit", async () => {
    using pair = new Pair();
    await pair.exec("true");
    pair.sandbox.run(`git -c user.name=a -c user.email=a@b commit -q --allow-empty -m work
      echo edit > a.txt; git branch other; touch .git/refs/heads/main.lock`);
    const { news } = await pair.sync();
    expect(news).toMatchObject([{ kept: [{ commits: 1, paths: ["a.txt"] }], aside: [] }]);
    expect(pair.sandbox.run("git rev-parse other")).not.toBe("");
  });

  it("[SY30] work that was kept by a check-out that failed, and where the repository is now", async () => {
    using pair = new Pair();
    await pair.exec("true");
    // No reference of this name can be written any more.
    pair.sandbox.run(`git -c user.name=a -c user.email=a@b commit -q --allow-empty -m work
      echo edit > a.txt; mkdir -p .git/refs/heads/main.lock/x`);
    const { news } = await pair.sync();
    expect(news).toMatchObject([
      { kept: [{ commits: 1, paths: ["a.txt"] }], aside: [".git/berth/broken"] },
    ]);
    expect(pair.sandbox.run("cat a.txt; ls -d .git/berth/broken/refs")).toContain("a\n");
    expect((await pair.sync()).news).toEqual([]);
  });

  it("[SY30] work in a repository that git cannot read any more", async () => {
    using pair = new Pair();
    await pair.exec("true");
    pair.sandbox.run("echo work > a.txt; rm .git/HEAD");
    expect(paths(await pair.sync())).toEqual([["a.txt"]]);
    expect(pair.sandbox.run("cat a.txt; ls -d .git/berth/broken")).toBe("a\n.git/berth/broken\n");
  });
});
