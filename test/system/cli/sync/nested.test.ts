/** Tests what becomes a repository below the checkout's, or stops being one. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Checkout } from "./checkout.ts";
import { expectSynced, type SyncPair, useSyncPairs } from "./sync-pair.ts";

const { begun } = await useSyncPairs();

/** It is a repository in the sandbox, and changes of a command in it come back. */
async function isNested(pair: SyncPair, name: string): Promise<void> {
  await expectSynced(pair);
  expect(await pair.there(`git -C ${name} rev-parse --show-prefix`)).toBe("\n");
  const synced = await pair.sync();
  await pair.there(`echo there > ${name}/from-there`);
  const { changed, refused } = await pair.pull(synced);
  expect({ changed, refused }).toEqual({ changed: [`${name}/from-there`], refused: [] });
  await expectSynced(pair);
}

describe("a new nested repository", () => {
  const before: [what: string, put: (of: Checkout) => void][] = [
    ["a folder", (of) => of.write("lib/r.txt", "r\n")],
    ["a file", (of) => of.write("lib", "file\n")],
    ["a link", (of) => of.link("lib", "b")],
  ];
  for (const [what, put] of before) {
    it(`[SY9] ${what} that becomes a submodule is sent as one, and later as before`, async () => {
      await using pair = await begun();
      const of = pair.checkout;
      using module = Checkout.begun({ "m.txt": "m\n" });
      put(of);
      of.commit("before");
      await expectSynced(pair);
      of.git("rm", "-q", "-r", "lib");
      of.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", module.root, "lib");
      of.commit("a submodule");
      await isNested(pair, "lib");
      of.git("submodule", "deinit", "-q", "-f", "lib");
      of.git("rm", "-q", "--cached", "lib", ".gitmodules");
      of.remove("lib");
      of.remove(".gitmodules");
      put(of);
      await expectSynced(pair);
    });
  }

  it("[SY9] a folder of tracked files that becomes a repository is sent as one, with files that the outer one ignores", async () => {
    await using pair = await begun({ "lib/r.txt": "r\n", "lib/deep/s.txt": "s\n" });
    const of = pair.checkout;
    await expectSynced(pair);
    of.gitAt(join(of.root, "lib"), "init", "-q");
    of.write(".gitignore", "*.log\n");
    of.write("lib/known.log", "known to the outer one\n");
    of.git("add", "-f", "lib/known.log");
    await isNested(pair, "lib");
  });

  it("[SY9] a folder called .git that is not a repository does not count as one", async () => {
    await using pair = await begun({ "lib/r.txt": "r\n" });
    await expectSynced(pair);
    pair.checkout.write("lib/.git/x", "x\n");
    pair.checkout.write("lib/new.txt", "new\n");
    expect(await expectSynced(pair)).toBeGreaterThan(0);
    expect(await pair.there("cat lib/new.txt")).toBe("new\n");
  });
});

describe("a former or foreign nested repository", () => {
  for (const isPulled of [false, true]) {
    const when = isPulled ? "after something came back" : "before anything came back";
    it(`[SY6] a nested repository that becomes ignored stays there, ${when}`, async () => {
      await using pair = await begun();
      const of = pair.checkout;
      const names = ["inner", "in/other *[x] "];
      for (const name of names) {
        of.git("init", "-q", name);
        of.write(`${name}/x`, "x\n");
      }
      of.gitAt(of.root, "init", "-q", "dropped");
      of.write("dropped/x", "x\n");
      await expectSynced(pair);
      if (isPulled) await pair.pull(await pair.sync());
      await pair.there("echo there > inner/y; echo there > 'in/other *[x] '/y");
      of.write(".gitignore", "/inner/\nother*\n");
      of.remove("dropped");
      await expectSynced(pair);
      expect(await pair.there("cat inner/[xy] in/other*/[xy]; ls")).toBe(
        "x\nthere\nx\nthere\na.txt\nb\nin\ninner\n",
      );
      for (const name of names) expect(of.read(`${name}/x`)).toBe("x\n");
      // No longer ignored they are synced again, and removed when they are removed here.
      of.remove(".gitignore");
      of.remove("inner");
      await pair.there("rm inner/y");
      await pair.pull(await pair.sync());
      await expectSynced(pair);
      expect(await pair.there("cat in/other*/x; ls . in/other*")).not.toMatch(/inner/);
    });
  }

  it("[SY6] a nested repository keeps new files if the outer one ignores all but named files", async () => {
    await using pair = await begun({
      ".gitignore": "*\n!*/\n!*.txt\n!.gitignore\n",
      "a.txt": "a\n",
    });
    const of = pair.checkout;
    of.git("init", "-q", "lib");
    of.write("lib/.gitignore", "made\n");
    of.write("lib/x.txt", "x\n");
    await pair.pull(await pair.sync());
    await pair.there("echo made > lib/made");
    await expectSynced(pair);
    expect(await pair.there("cat lib/made lib/x.txt; ls -d lib/.git")).toBe("made\nx\nlib/.git\n");
  });

  it("[SY31] repositories created by a command stay, and so do sent ones", async () => {
    await using pair = await begun({ ".gitignore": "made\n", "a.txt": "a\n" });
    const of = pair.checkout;
    for (const name of ["in/ner", "sp ace *?[x]\\ "]) {
      of.git("init", "-q", name);
      of.write(`${name}/.gitignore`, "made\n");
    }
    const first = await pair.sync();
    await pair.there("git init -q before; git init -q in/made; echo made > in/ner/made");
    await pair.sync();
    expect(await pair.there("ls -d before")).toBe("before\n");
    await pair.pull(first);
    await pair.there(
      'git init -q in/there; echo x > in/there/x; for at in sp*; do echo made > "$at/made"; done',
    );
    await pair.sync();
    expect(await pair.there("cat in/ner/made in/there/x sp*/made; ls . in")).toBe(
      "made\nx\nmade\n.:\na.txt\nbefore\nin\nsp ace *?[x]\\ \n\nin:\nmade\nner\nthere\n",
    );
  });
});
