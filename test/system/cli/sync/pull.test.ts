/** Tests that exactly the changes of a command come back, and that nothing changed here meanwhile is lost. */
import { createHash } from "node:crypto";
import { readdirSync, readlinkSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { WorktreeWriter } from "../../../../src/cli/sync/worktree-writer.ts";
import { Checkout } from "./checkout.ts";
import { type SyncPair, useSyncPairs } from "./sync-pair.ts";

const { begun } = await useSyncPairs();

const nothing = { conflicts: [], kept: [], refused: [] };

/** Syncs, runs the command, pulls. */
async function run(pair: SyncPair, command: string, meanwhile = (_: Checkout) => {}) {
  const synced = await pair.sync();
  await pair.there(command);
  meanwhile(pair.checkout);
  return await pair.pull(synced);
}

/** No temporary file is left. */
function clean(of: Checkout): void {
  const names = readdirSync(of.root, { recursive: true, withFileTypes: false }) as string[];
  expect(names.filter((name) => /\.berth-|\/berth\/(in|out|index)\./.test(name))).toEqual([]);
}

describe("changes of a command", () => {
  it("[SY20] changes of every kind come back, and nothing else is changed", async () => {
    const sent = ["changed", "removed/deep/file", "tool", "was-tool", "linked", "same"];
    await using pair = await begun(Object.fromEntries(sent.map((name) => [name, "x\n"])));
    const of = pair.checkout;
    of.write("was-tool", "x\n", 0o755);
    of.link("link", "same");
    of.write("staged", "staged\n");
    of.git("add", "staged");
    const before = statSync(of.path("same"), { bigint: true });
    const all = await run(
      pair,
      `printf 'a\\0b\\377' > changed; rm -r removed; chmod +x tool; chmod -x was-tool
       rm linked; ln -s same linked; ln -sfn changed link; mkdir -p new/er; echo n > new/er/file
       : > empty; mkdir hollow; printf '#!/bin/sh\\n' > runs; chmod +x runs; touch same`,
    );
    const names = ["changed", "empty", "link", "linked", "new/er/file", "removed/deep/file"];
    expect(all).toMatchObject({ changed: [...names, "runs", "tool", "was-tool"], ...nothing });
    expect(of.contents("changed", "empty")).toEqual(["a\0b\xff", ""]);
    expect([of.has("removed"), of.has("hollow")]).toEqual([false, false]);
    const links = ["linked", "link"].map((name) => readlinkSync(of.path(name), "utf8"));
    expect(links).toEqual(["same", "changed"]);
    const modes = ["tool", "was-tool", "runs"].map((name) => statSync(of.path(name)).mode & 0o111);
    expect(modes).toEqual([0o111, 0, 0o111]);
    expect(statSync(of.path("same"), { bigint: true })).toEqual(before);
    expect(of.git("diff", "--cached", "--name-only")).toBe("staged\n");
    clean(of);
    expect(await pair.pull(await pair.sync())).toMatchObject({ changed: [], receivedBytes: 0 });
    expect(await pair.seen()).toEqual(of.seen());
  });

  it("[SY20] names of any kind come back", async () => {
    await using pair = await begun();
    const script = `import os
for name in [b" ", b"-rf", b"q\\"uo'te", b"line\\nend", "ü🚀".encode(), b"n\\xff\\x80", b"*", b":(top)x", b"w" * 255]:
    open(name, "wb").write(name)`;
    const synced = await pair.sync();
    const argv = ["python3", "-c", script];
    expect((await pair.sandbox.exec({ argv, cwd: "/workspace" })).exitCode).toBe(0);
    const { changed, refused } = await pair.pull(synced);
    expect([changed.length, refused]).toEqual([9, []]);
    const texts = [" ", "-rf", "q\"uo'te", "line\nend", "ü🚀", "*", ":(top)x", "w".repeat(255)];
    for (const name of texts) {
      expect(pair.checkout.read(name)).toBe(Buffer.from(name).toString("latin1"));
    }
    expect(pair.checkout.read(Buffer.from([0x6e, 0xff, 0x80]))).toBe("n\xff\x80");
    await pair.sync();
    expect(await pair.seen()).toEqual(pair.checkout.seen());
  });

  it("[SY20] changes of a failed command come back, and the files of its commits", async () => {
    await using pair = await begun();
    const synced = await pair.sync();
    const command = `git config user.email a@b.c; git config user.name a
      echo committed > a.txt; git commit -qam inside; echo left > left; exit 3`;
    expect((await pair.sandbox.exec({ command, cwd: "/workspace" })).exitCode).toBe(3);
    expect((await pair.pull(synced)).changed).toEqual(["a.txt", "left"]);
    expect(pair.checkout.git("log", "--format=%s")).toBe("the first one\n");
  });

  it("[SY20] a file in place of a folder, and a folder in place of a file, come back", async () => {
    await using pair = await begun({ "folder/one": "1\n", "folder/two/three": "3\n", file: "f\n" });
    const command = "rm -r folder file; echo f > folder; mkdir file; echo i > file/in";
    const { changed } = await run(pair, command);
    expect(changed).toEqual(["file", "file/in", "folder", "folder/one", "folder/two/three"]);
    expect(pair.checkout.contents("folder", "file/in")).toEqual(["f\n", "i\n"]);
  });

  it("[SY20] a folder in place of a link, and a link in place of a folder, come back", async () => {
    await using pair = await begun({ ".gitignore": "*.log\n", "b/c.txt": "c\n", "d/e": "e\n" });
    const of = pair.checkout;
    of.link("away", "b");
    const command = "rm -r away d; mkdir away; echo i > away/in; echo l > away/x.log; ln -s b d";
    const all = await run(pair, command);
    expect(all).toMatchObject({ changed: ["away", "away/in", "d", "d/e"], ...nothing });
    const contents = of.contents("away/in", "away/x.log", "b/in");
    expect(contents).toEqual(["i\n", undefined, undefined]);
    expect(readlinkSync(of.path("d"))).toBe("b");
  });

  it("[SY20] line ends and filters do not change what comes back", async () => {
    const attributes = "*.dos eol=crlf\n* text=auto\n";
    await using pair = await begun({ ".gitattributes": attributes, "x.dos": "x\r\n" });
    pair.checkout.git("config", "core.autocrlf", "true");
    const command = "printf 'one\\r\\ntwo\\n' > x.dos; printf 'a\\r\\n' > new.txt";
    expect((await run(pair, command)).changed).toEqual(["new.txt", "x.dos"]);
    expect(pair.checkout.read("x.dos") + pair.checkout.read("new.txt")).toBe("one\r\ntwo\na\r\n");
  });

  it("[SY20] a large change comes back completely", async () => {
    await using pair = await begun();
    const make = `import random
open("large.bin", "wb").write(random.Random(7).randbytes(12_000_000))`;
    const all = await run(pair, `python3 -c '${make}'; sha256sum large.bin > sum`);
    expect(all).toMatchObject({ changed: ["large.bin", "sum"], ...nothing });
    expect(all.receivedBytes).toBeGreaterThan(12_000_000);
    const hash = createHash("sha256").update(pair.checkout.read("large.bin"), "latin1");
    expect(pair.checkout.read("sum")).toBe(`${hash.digest("hex")}  large.bin\n`);
  });

  it("[SY20] an unreadable file is reported, and the others come back", async () => {
    await using pair = await begun();
    const all = await run(pair, "echo x > closed; chmod 000 closed; echo y > open");
    expect(all.changed).toEqual(["open"]);
    expect(all.refused).toEqual([{ path: "closed", why: expect.stringMatching(/cannot be read/) }]);
  });
});

describe("an ignored file", () => {
  it("[SY21] does not come back, even if the command changed the ignore lists", async () => {
    await using pair = await begun({ ".gitignore": "made/\n*.log\n", "a.txt": "a\n" });
    const of = pair.checkout;
    of.write("made/here", "here\n");
    const command =
      "mkdir -p made; echo x > made/here; echo x > y.log; : > .gitignore; echo n > new";
    expect((await run(pair, command)).changed).toEqual([".gitignore", "new"]);
    const contents = of.contents("made/here", "y.log", ".gitignore");
    expect(contents).toEqual(["here\n", undefined, ""]);
  });

  it("[SY21] does not come back, even if the command removed the ignore lists", async () => {
    await using pair = await begun({
      ".gitignore": "made/\n",
      "deep/.gitignore": "*.log\n",
      "deep/known": "x\n",
      "list/.gitignore": "*.log\n",
    });
    const of = pair.checkout;
    of.write("made/here", "here\n");
    const all = await run(
      pair,
      "mkdir -p made; echo x | tee made/here made/there deep/y.log; rm -r .gitignore deep/.gitignore deep/known list; echo n > list",
    );
    const removed = [".gitignore", "deep/.gitignore", "deep/known", "list/.gitignore"];
    expect(all).toMatchObject({
      changed: [...removed.slice(0, 3), "list", removed[3]],
      ...nothing,
    });
    expect(removed.filter((name) => name !== "list/.gitignore" && of.has(name))).toEqual([]);
    expect(of.has("deep")).toBe(false);
    const contents = of.contents("made/there", "made/here", "list");
    expect(contents).toEqual([undefined, "here\n", "n\n"]);
    clean(of);
  });

  it("[SY21] comes back if git tracks it", async () => {
    await using pair = await begun({ "forced.log": "x\n" });
    pair.checkout.write(".gitignore", "*.log\n");
    const { changed } = await run(pair, "echo changed > forced.log");
    expect(changed).toEqual(["forced.log"]);
    pair.checkout.remove("forced.log");
    const second = await run(pair, "echo again > forced.log; echo x > other.log");
    expect([second.changed, pair.checkout.read("forced.log")]).toEqual([["forced.log"], "again\n"]);
  });
});

describe("a file changed here meanwhile", () => {
  it("[SY22] stays, and the other version is saved next to it under a reported name", async () => {
    const files = { one: "1\n", two: "2\n", three: "3\n", tool: "t\n", gone: "g\n" };
    await using pair = await begun(files);
    const of = pair.checkout;
    const all = await run(
      pair,
      "for f in one two tool gone new; do echo there > $f; done; rm three; echo fine > fine; chmod +x tool",
      () => {
        of.write("one", "here\n");
        of.write("two", "there\n");
        of.write("three", "here\n");
        of.write("tool", "t\n", 0o755);
        of.remove("gone");
        of.write("new", "here\n");
      },
    );
    expect(all.changed).toEqual(["fine"]);
    expect(all.kept).toEqual(["three"]);
    const saved = ["gone", "new", "one", "tool"].map((path) => {
      return { path, savedAs: `${path}.from-sandbox` };
    });
    expect(all.conflicts).toEqual(saved);
    for (const { savedAs } of saved) expect(of.read(savedAs)).toBe("there\n");
    const contents = of.contents("one", "three", "tool", "gone", "new");
    expect(contents).toEqual(["here\n", "here\n", "t\n", undefined, "here\n"]);
    clean(of);
  });

  it("[SY22] a second version gets its own name, and an identical one is reused", async () => {
    await using pair = await begun();
    const of = pair.checkout;
    const change = (text: string) =>
      run(pair, `echo ${text} > a.txt`, () => of.write("a.txt", `${Math.random()}`));
    const names: string[] = [];
    for (const text of ["first", "second", "first"]) {
      for (const { savedAs } of (await change(text)).conflicts) names.push(savedAs);
    }
    expect(names).toEqual(["a.txt.from-sandbox", "a.txt.from-sandbox-2", "a.txt.from-sandbox"]);
  });

  it("[SY22] a folder and a file in each other's place both stay", async () => {
    await using pair = await begun({ "folder/one": "1\n", file: "f\n" });
    const of = pair.checkout;
    const all = await run(
      pair,
      "rm -r folder file; echo there > folder; mkdir file; echo there > file/in; mkdir fresh; echo there > fresh/in",
      () => {
        of.write("folder/mine", "here\n");
        of.write("file", "here\n");
        of.write("fresh", "here\n");
      },
    );
    expect(all.kept).toEqual(["file"]);
    expect(all.conflicts).toEqual([
      { path: "file/in", savedAs: "file.from-sandbox/in" },
      { path: "folder", savedAs: "folder.from-sandbox" },
      { path: "fresh/in", savedAs: "fresh.from-sandbox/in" },
    ]);
    expect(of.contents("folder/mine", "file", "fresh")).toEqual(["here\n", "here\n", "here\n"]);
    const saved = of.contents("file.from-sandbox/in", "folder.from-sandbox");
    expect(saved).toEqual(["there\n", "there\n"]);
  });

  for (const [what, before] of [
    ["changes", "sent\n"],
    ["appears", undefined],
  ] as const) {
    it(`[SY22] a file that ${what} at the last moment stays`, () => {
      using of = Checkout.begun(before === undefined ? {} : { file: before });
      of.write("../staged", "there\n");
      const idOf = (text: string) => {
        return createHash("sha1").update(`blob ${text.length}\0${text}`).digest("hex");
      };
      const entry = (text: string) => ({ mode: "100644", id: idOf(text) });
      let isRead = 0;
      const writer = new WorktreeWriter(of.root, "sha1", () => {
        // The content is read after the file was found to be as sent.
        isRead += 1;
        if (isRead === 1) of.write("file", "here\n");
        return of.path("../staged").toString();
      });
      const from = before === undefined ? undefined : entry(before);
      const placed = writer.apply({ name: "file", from, to: entry("there\n") });
      expect(placed).toEqual({ what: "conflict", savedAs: "file.from-sandbox" });
      expect(of.contents("file", "file.from-sandbox")).toEqual(["here\n", "there\n"]);
      clean(of);
    });
  }

  it("[SY22] nothing is written through a folder that became a link here", async () => {
    await using pair = await begun({ "folder/one": "1\n" });
    const of = pair.checkout;
    const all = await run(pair, "echo there > folder/one; echo there > folder/new", () => {
      of.write("../elsewhere/one", "1\n");
      of.remove("folder");
      of.link("folder", "../elsewhere");
    });
    expect(all.changed).toEqual([]);
    expect(all.refused.map(({ path }) => path)).toEqual(["folder/new", "folder/one"]);
    expect(readdirSync(of.path("../elsewhere"))).toEqual(["one"]);
    expect(of.read("../elsewhere/one")).toBe("1\n");
  });

  it("[SY23] a file removed here after it came back does not come back again", async () => {
    await using pair = await begun();
    expect((await run(pair, "echo made > made")).changed).toEqual(["made"]);
    pair.checkout.remove("made");
    expect((await run(pair, "ls > seen")).changed).toEqual(["seen"]);
    expect(pair.checkout.contents("seen", "made")).toEqual(["a.txt\nb\nseen\n", undefined]);
  });

  it("[SY23] files that the sandbox never had stay whatever happens", async () => {
    await using pair = await begun({ ".gitignore": "private\n", "a.txt": "a\n" });
    pair.checkout.write("private", "mine\n");
    pair.checkout.write("own", "mine\n");
    await run(pair, "git clean -qfdx; git reset -q --hard", (of) => of.write("later", "mine\n"));
    const left = pair.checkout.contents("private", "later", "own");
    expect(left).toEqual(["mine\n", "mine\n", undefined]);
  });
});
