/** Tests repeated syncs: only missing objects are sent, a command's changes are undone, and ignored files stay. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { syncUp } from "../../../../src/cli/sync/sync.ts";
import { Checkout } from "./checkout.ts";
import { expectSynced, useSyncPairs } from "./sync-pair.ts";

const { begun } = await useSyncPairs();

const gitHere = execFileSync("sh", ["-c", "command -v git"]).toString().trim();

describe("history", () => {
  it("[SY1] sends a branch that was reset, rebased or merged", async () => {
    await using pair = await begun();
    const of = pair.checkout;
    await expectSynced(pair);
    of.commit("second", { "a.txt": "second\n" });
    await expectSynced(pair);
    of.git("commit", "-q", "--amend", "-m", "in other words");
    await expectSynced(pair);
    of.git("reset", "-q", "--hard", "HEAD~1");
    await expectSynced(pair);
    of.git("checkout", "-q", "-b", "side");
    of.commit("side", { "side.txt": "side\n" });
    of.git("checkout", "-q", "main");
    of.commit("main", { "main.txt": "main\n" });
    await expectSynced(pair);
    of.git("merge", "-q", "--no-edit", "side");
    await expectSynced(pair);
    of.git("checkout", "-q", "--detach", "side");
    of.git("rebase", "-q", "main");
    await expectSynced(pair);
    const log = of.git("log", "--format=%H %s");
    expect(log.split("\n").length).toBeGreaterThan(3);
    expect(await pair.there("git log --format='%H %s'")).toBe(log);
  });

  it("[SY1] sends a branch with the name of a former folder of branches", async () => {
    await using pair = await begun();
    pair.checkout.git("checkout", "-q", "-b", "topic");
    await expectSynced(pair);
    pair.checkout.git("branch", "-m", "topic", "topic/one");
    await expectSynced(pair);
    pair.checkout.git("branch", "-m", "topic/one", "topic2");
    pair.checkout.git("branch", "-m", "topic2", "topic");
    await expectSynced(pair);
  });
});

describe("only what is missing", () => {
  it("[SY11] without changes one call is made and nothing is sent", async () => {
    await using pair = await begun();
    await expectSynced(pair);
    const calls: string[] = [];
    const spied = new Proxy(pair.sandbox, {
      get(of, name) {
        const verb = Reflect.get(of, name);
        if (typeof verb !== "function") return verb;
        return (...args: unknown[]) => {
          calls.push(String(name));
          return Reflect.apply(verb, of, args);
        };
      },
    });
    const { sentBytes } = await pair.sync(pair.checkout.root, spied);
    expect({ calls, sentBytes }).toEqual({ calls: ["exec"], sentBytes: 0 });
  });

  it("[SY11] a small change sends little, however large the checkout is", async () => {
    await using pair = await begun();
    pair.checkout.commit("large", { "large.bin": randomBytes(3_000_000) });
    expect(await expectSynced(pair)).toBeGreaterThan(2_900_000);
    pair.checkout.write("a.txt", "changed\n");
    const sentBytes = await expectSynced(pair);
    expect(sentBytes).toBeGreaterThan(0);
    expect(sentBytes).toBeLessThan(20_000);
    // What the sandbox had before is not sent again either.
    pair.checkout.git("checkout", "-q", "--", "a.txt");
    expect(await expectSynced(pair)).toBe(0);
  });

  it("[SY13] a large upload reports its progress up to the end", async () => {
    await using pair = await begun();
    pair.checkout.write("large.bin", randomBytes(4_000_000));
    const messages: string[] = [];
    await syncUp(pair.sandbox, pair.checkout.root, { progress: (text) => messages.push(text) });
    const steps = messages.filter((text) => /^Sending \d+\.\d of 4\.\d MB$/.test(text));
    expect(new Set(steps).size).toBeGreaterThan(5);
    expect(messages.at(-1)).toBe("Checking out in the sandbox");
    expect(await pair.seen()).toEqual(pair.checkout.seen());
  });

  it("[SY13] a cancelled sync ends, and the next one is complete", async () => {
    await using pair = await begun();
    pair.checkout.write("large.bin", randomBytes(4_000_000));
    const off = new AbortController();
    const progress = (text: string) => {
      if (/^Sending [12]/.test(text)) off.abort(new Error("called off"));
    };
    const options = { signal: off.signal, progress };
    await expect(syncUp(pair.sandbox, pair.checkout.root, options)).rejects.toThrow();
    expect(off.signal.aborted).toBe(true);
    await expectSynced(pair);
    const left = await pair.there("find .git/berth -name 'in.*' | wc -l");
    expect(left.trim()).toBe("0");
  });

  it("[SY11] two checkouts of one repository can share a sandbox", async () => {
    await using pair = await begun();
    using other = new Checkout();
    other.gitAt(other.folder, "clone", "-q", pair.checkout.root, "code");
    await expectSynced(pair);
    other.write("from-other.txt", "other\n");
    pair.checkout.write("a.txt", "mine\n");
    for (const of of [other, pair.checkout, other]) {
      await syncUp(pair.sandbox, of.root);
      // Before the first pull, a sync removes only what the previous one sent.
      expect(await pair.seen()).toEqual(of.seen());
    }
  });
});

describe("changes left by commands", () => {
  it("[SY7] are undone before the next command: changed, staged, committed and new files", async () => {
    await using pair = await begun();
    await pair.pull(await pair.sync());
    await pair.there(`git config user.email a@b.c; git config user.name a
      echo changed > a.txt; rm -r b; mkdir -p left/over empty/folder; echo x > left/over/file
      git add -A; git commit -qm inside; git checkout -q -b inside; echo more > a.txt
      git tag inside; touch .git/index.lock; git rev-parse HEAD`);
    await expectSynced(pair);
    expect(await pair.there("ls -A")).toBe(".git\na.txt\nb\n");
  });

  it("[SY6] ignored files stay there and here", async () => {
    await using pair = await begun({ ".gitignore": "made/\n*.log\n", "src/a": "a\n" });
    await pair.pull(await pair.sync());
    await pair.there(
      "mkdir -p made src/made; echo kept > made/x; echo kept > src/made/y; echo l > src/z.log",
    );
    pair.checkout.write("made/x", "here\n");
    pair.checkout.write("src/a", "changed\n");
    await expectSynced(pair);
    expect(await pair.there("cat made/x src/made/y src/z.log")).toBe("kept\nkept\nl\n");
    expect(pair.checkout.read("made/x")).toBe("here\n");
  });

  it("[SY6] files that become ignored stay there, and files that are no longer ignored are synced", async () => {
    await using pair = await begun();
    await pair.pull(await pair.sync());
    pair.checkout.write("cache/x", "cached\n");
    await expectSynced(pair);
    pair.checkout.write(".gitignore", "cache/\n");
    await expectSynced(pair);
    expect(await pair.there("cat cache/x")).toBe("cached\n");
    pair.checkout.write("cache/x", "newer\n");
    pair.checkout.remove(".gitignore");
    await expectSynced(pair);
    expect(await pair.there("cat cache/x")).toBe("newer\n");
  });

  it("[SY7] a sent file replaces what is there, ignored or not", async () => {
    await using pair = await begun({ "a.txt": "a\n", ".gitignore": "*.log\n" });
    await pair.pull(await pair.sync());
    await pair.there("echo there > x.log; mkdir -p b/c; echo there > b/c/d; echo there > new.txt");
    pair.checkout.write(".gitignore", "");
    pair.checkout.write("x.log", "here\n");
    pair.checkout.write("b", "a file\n");
    pair.checkout.write("new.txt", "here\n");
    await expectSynced(pair);
  });

  it("[SY7] a tracked file missing here is removed there, ignored there or not", async () => {
    await using pair = await begun({ "b/c.txt": "c\n", ".gitignore": "*.log\n" });
    await pair.pull(await pair.sync());
    await pair.there("mkdir d; for name in x.log d/y.log z.log w.log; do echo there > $name; done");
    const of = pair.checkout;
    for (const name of ["x.log", "d/y.log", "z.log"]) of.write(name, "here\n");
    of.git("add", "-f", "x.log", "d/y.log");
    of.git("add", "-f", "-N", "z.log");
    for (const name of ["x.log", "d", "z.log"]) of.remove(name);
    await expectSynced(pair);
    expect(await pair.there("find . -name '*.log' -not -path './.git/*'")).toBe("./w.log\n");
    // The same name behind a link is another file.
    await pair.there("echo there > b/y.log");
    of.link("d", "b");
    await pair.sync();
    expect((await pair.seen()).status).toBe(of.seen().status);
    expect(await pair.there("cat b/y.log")).toBe("there\n");
  });

  it("[SY7] a file that reappears during the scan is sent and stays there", async () => {
    await using pair = await begun({ "late.txt": "one\n" });
    const of = pair.checkout;
    of.remove("late.txt");
    of.write(
      "../bin/git",
      `#!/bin/sh
case " $* " in
  *" --deleted "*) ${gitHere} "$@"; echo two > late.txt ;;
  *" diff-files "*|*" --others "*) sleep 0.5; exec ${gitHere} "$@" ;;
  *) exec ${gitHere} "$@" ;;
esac
`,
      0o755,
    );
    const { PATH } = process.env;
    process.env.PATH = `${of.path("../bin")}:${PATH}`;
    await pair.sync().finally(() => {
      process.env.PATH = PATH;
    });
    expect([of.read("late.txt"), await pair.there("cat late.txt")]).toEqual(["two\n", "two\n"]);
  });

  it("[SY7] files created before the first pull stay until then", async () => {
    await using pair = await begun();
    await pair.sync();
    await pair.there("mkdir -p set/up; echo made > set/up/file");
    const synced = await pair.sync();
    expect(await pair.there("cat set/up/file")).toBe("made\n");
    const { changed } = await pair.pull(synced);
    expect(changed).toEqual(["set/up/file"]);
    expect(pair.checkout.read("set/up/file")).toBe("made\n");
    pair.checkout.remove("set");
    await expectSynced(pair);
  });

  const damages: [what: string, how: string][] = [
    ["[SY12] a removed repository is created again", "rm -rf .git"],
    [
      "[SY12] a repository that lost its objects is created again",
      "rm -rf .git/objects/* .git/berth/objects/??",
    ],
    ["[SY12] a broken index is read again", "echo x > .git/index; echo x > .git/berth/index"],
    ["[SY12] a repository replaced by a file is created again", "rm -rf .git; echo x > .git"],
    [
      "[SY12] a repository stays complete after a thorough gc",
      "git gc -q --prune=now --aggressive",
    ],
    ["[SY12] a dangling HEAD is repaired", "echo nonsense > .git/HEAD"],
  ];
  for (const [title, how] of damages) {
    it(title, async () => {
      await using pair = await begun();
      pair.checkout.write("a.txt", "changed\n");
      await expectSynced(pair);
      await pair.there(how);
      await expectSynced(pair);
      pair.checkout.commit("and again", { "a.txt": "changed again\n" });
      await expectSynced(pair);
    });
  }
});
