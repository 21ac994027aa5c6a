/** Tests that a checkout is sent completely, whatever objects or history its repository lacks. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { syncUp } from "../../../../src/cli/sync/sync.ts";
import { Checkout } from "./checkout.ts";
import { expectSynced, type SyncPair, useSyncPairs } from "./sync-pair.ts";

const { pairOf, begun } = await useSyncPairs();

/** Four commits, in a repository that serves partial clones. */
function origin(): Checkout {
  const of = Checkout.begun();
  of.git("config", "uploadpack.allowFilter", "true");
  of.git("config", "uploadpack.allowAnySHA1InWant", "true");
  for (const text of ["two", "three", "four"]) {
    of.write("a.txt", `${text}\n`);
    of.write(`d/${text}`, `${text}\n`);
    of.commit(text);
  }
  return of;
}

function cloned(from: Checkout, ...how: string[]): Checkout {
  const clone = new Checkout();
  clone.gitAt(clone.folder, "clone", "-q", ...how, `file://${from.root}`, "code");
  return clone;
}

describe("temporary files of a killed run", () => {
  it("[SY27] are removed by the next run once they are old and their process has ended; others stay", async () => {
    const pair = await begun();
    await expectSynced(pair);
    const berthDir = join(pair.checkout.root, ".git/berth");
    const { pid: gone } = spawnSync("true");
    const long = new Date(Date.now() - 2 * 3_600_000);
    const put = (name: string, at = new Date()) => {
      writeFileSync(join(berthDir, name), "");
      utimesSync(join(berthDir, name), at, at);
      return name;
    };
    const id = "0b1c2d3e-0000-4000-8000-000000000000";
    const left = [`out.${gone}.${id}.pack`, `in.${gone}.${id}.pack`, `index.${gone}.${id}.lock`];
    const used = [`out.${process.pid}.${id}.pack`, "index", `other.${gone}.${id}`];
    for (const name of [...left, ...used.filter((name) => name !== "index")]) put(name, long);
    const young = put(`index.${gone}.${id}`);
    await expectSynced(pair);
    const names = readdirSync(berthDir);
    expect(left.filter((name) => names.includes(name))).toEqual([]);
    expect([...used, young].filter((name) => !names.includes(name))).toEqual([]);
  });
});

/** The complete history, on both sides. */
async function isWhole(pair: SyncPair): Promise<void> {
  await expectSynced(pair);
  expect(await pair.there("git log --format=%s -- a.txt")).toBe(
    "four\nthree\ntwo\nthe first one\n",
  );
  expect(await pair.there("git show HEAD~2:a.txt")).toBe("two\n");
  expect(await pair.there("git fsck --full 2>&1 | grep -v dangling || true")).toBe("");
}

describe("objects that the owner's git has removed", () => {
  /** The staged content is still on disk, but no object refers to it there. */
  const clear = (of: Checkout) => {
    of.git("reset", "-q", "notes.txt");
    of.git("-c", "gc.pruneExpire=now", "gc", "-q", "--prune=now");
  };
  const staged = async () => {
    const pair = await begun();
    const of = pair.checkout;
    of.write("notes.txt", "notes\n");
    of.git("add", ".");
    await expectSynced(pair);
    const id = of.git("hash-object", "notes.txt").trim();
    clear(of);
    expect(() => of.git("cat-file", "-e", id)).toThrow();
    return pair;
  };

  it("[SY27] are sent again from the files after another file has changed", async () => {
    await using pair = await staged();
    pair.checkout.write("other.txt", "other\n");
    expect(await expectSynced(pair)).toBeGreaterThan(0);
    expect(await pair.there("cat notes.txt other.txt")).toBe("notes\nother\n");
  });

  it("[SY27] are sent to another sandbox when nothing has changed", async () => {
    await using pair = await staged();
    await using other = await pairOf(new Checkout("code", pair.checkout.folder));
    await expectSynced(other);
    expect(await other.there("cat notes.txt")).toBe("notes\n");
    expect((await other.pull(await other.sync())).changed).toEqual([]);
  });
});

describe("a partial clone", () => {
  const forms = [["--filter=blob:none"], ["--filter=blob:none", "--sparse"], ["--filter=tree:0"]];
  for (const form of forms) {
    it(`[SY28] made with ${form.join(" ")} is sent with its complete history`, async () => {
      using from = origin();
      const of = cloned(from, ...form);
      await using pair = await pairOf(of);
      const lacks = () => of.git("rev-list", "--objects", "--missing=print", "HEAD").match(/^\?/gm);
      const before = lacks()?.length;
      expect(before).toBeGreaterThan(0);
      of.write("a.txt", "changed\n");
      of.write("new.txt", "new\n");
      of.git("add", "new.txt");
      await isWhole(pair);
      // The owner's clone stays partial, and objects are fetched only once.
      expect(lacks()?.length).toBe(before);
      renameSync(from.root, `${from.root}.away`);
      of.write("new.txt", "newer\n");
      of.git("commit", "-q", "-am", "five");
      await expectSynced(pair);
      const synced = await pair.sync();
      await pair.there("git checkout -q HEAD~2 -- . && echo there > there");
      expect((await pair.pull(synced)).changed).toContain("there");
    });
  }

  it("[SY28] whose remote cannot be reached is refused with the next step", async () => {
    const from = origin();
    const of = cloned(from, "--filter=blob:none");
    await using pair = await pairOf(of);
    from[Symbol.dispose]();
    await expect(pair.sync()).rejects.toMatchObject({
      code: "fetch_failed",
      message: expect.stringMatching(/partial clone/),
      hint: expect.stringMatching(/--filter/),
    });
  });
});

describe("a history that ends elsewhere", () => {
  it("[SY10] a full clone is sent completely to the sandbox of a shallow one, and they can share it", async () => {
    using from = origin();
    using shallow = cloned(from, "--depth=1");
    await using pair = await pairOf(cloned(from));
    await syncUp(pair.sandbox, shallow.root);
    expect(await pair.there("git log --format=%s")).toBe("four\n");
    await isWhole(pair);
    for (const text of ["five", "six"]) {
      shallow.write("a.txt", `${text}\n`);
      await syncUp(pair.sandbox, shallow.root);
      expect(await pair.there("git log --format=%s; cat a.txt")).toBe(`four\n${text}\n`);
      expect(await pair.there("git rev-parse --is-shallow-repository")).toBe("true\n");
      await isWhole(pair);
    }
  });

  it("[SY10] a commit that a command fetched without its parents does not count as complete", async () => {
    using from = origin();
    const of = cloned(from);
    of.git("reset", "-q", "--hard", "HEAD~3");
    await using pair = await pairOf(of);
    await expectSynced(pair);
    // As a command would fetch it from a remote: the commit with its files, on a branch, without parents.
    of.git("pull", "-q");
    using part = cloned(from, "--depth=1");
    part.git("bundle", "create", "-q", "one.bundle", "HEAD");
    await pair.sandbox.files.write("/tmp/one.bundle", readFileSync(part.path("one.bundle")));
    await pair.there(`git init -q /tmp/part
      head=${of.git("rev-parse", "HEAD").trim()}
      echo $head > /tmp/part/.git/shallow
      sed -n '/^$/,$p' /tmp/one.bundle | tail -c +2 | git -C /tmp/part index-pack --stdin >/dev/null
      git -C /tmp/part update-ref refs/heads/one $head
      git fetch -q --update-shallow /tmp/part one:fetched`);
    expect(await pair.there("git log --format=%s fetched")).toBe("four\n");
    of.git("reset", "-q", "--hard", "HEAD~3");
    of.write("b/c.txt", "changed\n");
    await expectSynced(pair);
    of.git("reset", "-q", "--hard");
    of.git("merge", "-q", "--ff-only", "origin/HEAD");
    await isWhole(pair);
  });
});
