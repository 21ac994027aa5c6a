/** Changes between two saved workspaces, against a naive model and with misleading names and times. */
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import type { Changes } from "../../src/protocol/checkpoint.ts";
import { changesBetween } from "../fakes/changes.ts";
import { identities, newId, type RunningSandbox, run, sharedEngine } from "./test-engine.ts";
import { applyDeeds, deeds, entriesOf, python, type TreeChange } from "./workspaces.ts";

const treesEach = 10;
const listMax = 1000;

describe.each(identities())("changed paths of an engine that is %s", (as) => {
  const engine = sharedEngine(as);
  let sandbox: RunningSandbox;

  beforeAll(async () => {
    sandbox = await run(engine);
  });
  const saved = async () => (await sandbox.container.snapshot(newId())).handle;
  const changes = async (call: { from?: string; to: string; listMax?: number }) => {
    const result = await sandbox.container.changes({ listMax, ...call });
    if (result === undefined) throw new Error("this engine compares trees");
    return result;
  };
  /** Returns what a command changes. */
  const changedBy = async (work: () => Promise<unknown>): Promise<Changes> => {
    const from = await saved();
    await work();
    return await changes({ from, to: await saved() });
  };
  const sh = async (command: string) => {
    const { exitCode, stderr } = await sandbox.sh(`cd /workspace; ${command}`);
    expect(exitCode, stderr).toBe(0);
  };

  it("[CH1] of randomly changed trees equal those of a naive model, forwards, backwards and from nothing", {
    timeout: 240_000,
  }, async () => {
    const later: TreeChange = ["write", Buffer.from("/workspace/later").toString("hex"), 1, 5];
    const totals = { added: 0, modified: 0, deleted: 0 };
    await fc.assert(
      fc.asyncProperty(deeds(0, 120), deeds(1, 120), fc.nat(12), async (first, then, few) => {
        await applyDeeds(sandbox, first);
        const [from, before] = [await saved(), await entriesOf(sandbox)];
        expect(await applyDeeds(sandbox, [...then, later])).toBeGreaterThan(0);
        const [to, after] = [await saved(), await entriesOf(sandbox)];
        const forth = await changes({ from, to });
        expect(forth).toEqual(changesBetween(before, after, listMax));
        const back = await changes({ from: to, to: from });
        expect(back).toEqual(changesBetween(after, before, listMax));
        expect(await changes({ to })).toEqual(changesBetween(undefined, after, listMax));
        const part = await changes({ from, to, listMax: few });
        expect(part).toEqual(changesBetween(before, after, few));
        for (const kind of ["added", "modified", "deleted"] as const) {
          totals[kind] += forth.counts[kind];
        }
        await sh("rm -f later");
      }),
      { numRuns: treesEach, endOnFailure: true },
    );
    expect(Math.min(...Object.values(totals))).toBeGreaterThan(0);
  });

  it("[CH2] are empty if nothing changed, even if files were touched, read or rewritten with the same content", async () => {
    sandbox = await run(engine);
    await sh("mkdir -p a/b; seq 10000 > a/b/numbers; echo x > x; ln -s x link; mkfifo pipe");
    const nothing = {
      ...{ added: [], modified: [], deleted: [] },
      ...{ counts: { added: 0, modified: 0, deleted: 0 }, bytes: 0 },
    };
    expect(await changedBy(() => sh("cat a/b/numbers"))).toEqual(nothing);
    const touched = () => sh("touch x a/b; touch -h link; seq 10000 > new; mv new a/b/numbers");
    expect(await changedBy(touched)).toEqual(nothing);
    expect((await changes({ to: await saved() })).counts.added).toBe(4);
  });

  it("[CH3] include a file of the same size whose content changed, however soon, and under a time that was set", async () => {
    sandbox = await run(engine);
    const write = (text: string) =>
      sh(
        [
          `for file in ahead soon unpacked; do echo ${text} > $file; done`,
          "touch -d 1985-10-26T08:15:00Z unpacked; touch -d 2222-02-02T22:22:22.2Z ahead",
        ].join("; "),
      );
    await write("1");
    expect(await changedBy(() => write("2"))).toMatchObject({
      modified: ["ahead", "soon", "unpacked"],
      counts: { added: 0, modified: 3, deleted: 0 },
      bytes: 6,
    });
    for (let n = 3; n < 8; n += 1) {
      const change = await changedBy(() => sh(`printf '%s\\n' ${n} > soon`));
      expect(change.modified).toEqual(["soon"]);
    }
  });

  it("[CH4] include mode, attributes, kind and target; a folder counts for itself, not for its entries", async () => {
    sandbox = await run(engine);
    await sh("mkdir folder plain kind2; for f in mode kind plain/f; do echo x > $f; done");
    await sh("ln -s a link");
    const set = `
import os
os.setxattr("/workspace/plain", "user.note", b"1")
os.setxattr("/workspace/plain/f", "user.note", b"1")
`;
    const change = await changedBy(async () => {
      await sh("chmod 600 mode; chmod 700 folder . ; ln -sfn b link");
      await sh(
        "rm kind; mkdir kind; touch kind/in; rmdir kind2; echo x > kind2; echo y > folder/in",
      );
      await python(sandbox, set);
    });
    expect(change.modified).toEqual(
      ["./", "folder/", "kind/", "kind2", "link", "mode", "plain/", "plain/f"].sort(),
    );
    expect(change.added).toEqual(["folder/in", "kind/in"]);
    expect(change.deleted).toEqual([]);
  });

  it("[CH5] list a new folder by its entries, an empty one by itself, and a moved file as deleted and added", async () => {
    sandbox = await run(engine);
    await sh("mkdir -p old/deep; echo x > old/deep/f; mkdir old/empty");
    const change = await changedBy(() => sh("mv old new; mkdir -p a/b/c; echo 12345 > a/f"));
    expect(change.added).toEqual(["a/b/c/", "a/f", "new/deep/f", "new/empty/"]);
    expect(change.deleted).toEqual(["old/deep/f", "old/empty/"]);
    expect(change.bytes).toBe(8);
  });

  it("[CH6] escape hostile names so that no two look alike, at any depth, and follow no link", async () => {
    sandbox = await run(engine);
    await sh("echo secret > /var/tmp/outside; mkdir real; echo x > real/f");
    const make = `
import os
for name in (b"bad\\xff", b"bad\\\\xff", b"line\\nend", b"esc\\x1b[31m", "ünï ☃".encode(), "turn\\u202e".encode(), b"\\xed\\xa0\\x80", b"-rf", b" ", b"..."):
    open(b"/workspace/" + name, "w").close()
os.symlink("/var/tmp", "/workspace/out")
os.symlink("real", "/workspace/in")
os.chdir("/workspace")
for n in range(15):
    os.mkdir("d" * 255); os.chdir("d" * 255)
os.mkdir("d" * 20); os.chdir("d" * 20)
open("e" * 60, "w").close()
`;
    const change = await changedBy(() => python(sandbox, make));
    const folders = (count: number) => `${"d".repeat(255)}/`.repeat(count);
    const deep = `${folders(15)}${"d".repeat(20)}/${"e".repeat(60)}`;
    expect(change.added).toEqual(
      [
        ...["bad\\xff", "bad\\\\xff", "line\\x0aend", "esc\\x1b[31m", "ünï ☃"],
        ...["turn\\xe2\\x80\\xae", "\\xed\\xa0\\x80", "-rf", " ", "...", "out", "in", deep],
      ].sort(),
    );
    const toDeepest = `cd ${folders(7)}; cd ${folders(8)}${"d".repeat(20)}`;
    const more = await changedBy(async () => {
      await python(sandbox, `${make.split("\nos.symlink")[0]}\n`);
      await sh(`${toDeepest}; echo x > more; rm e*`);
    });
    expect(more.added).toEqual([deep.replace(/e+$/, "more")]);
    expect(more.deleted).toEqual([deep]);
    expect(more.modified).toEqual([]);
  });

  it("[CH7] are limited in each list by a share of the maximum; the rest is only counted", async () => {
    sandbox = await run(engine);
    await sh("mkdir old; for n in $(seq 1500); do : > old/$n; done; echo x > first; echo x > last");
    const from = await saved();
    await sh("rm -r old; for n in $(seq 1500); do : > new$n; done; echo y > first; echo y > last");
    const to = await saved();
    const all = await changes({ from, to });
    expect(all.counts).toEqual({ added: 1500, modified: 2, deleted: 1500 });
    expect(all.modified).toEqual(["first", "last"]);
    expect([all.added.length, all.deleted.length]).toEqual([499, 499]);
    const names = Array.from({ length: 1500 }, (_, n) => `new${n + 1}`).sort();
    expect(all.added).toEqual(names.slice(0, 499));
    const few = await changes({ from, to, listMax: 4 });
    expect([few.added.length, few.modified.length, few.deleted.length]).toEqual([2, 1, 1]);
    const onlyCounts = { ...all, ...{ added: [], modified: [], deleted: [] } };
    expect(await changes({ from, to, listMax: 0 })).toEqual(onlyCounts);
  });

  it("[CH8] of unknown snapshots, and invalid calls, are refused with the name of the field", async () => {
    sandbox = await run(engine);
    const to = await saved();
    const missing = { code: "not_found", facts: { reason: "snapshot_missing" } };
    await expect(changes({ to: newId() })).rejects.toMatchObject(missing);
    await expect(changes({ from: newId(), to })).rejects.toMatchObject(missing);
    const wrong = { code: "bad_request", facts: { field: "body.listMax" } };
    await expect(changes({ to, listMax: listMax + 1 })).rejects.toMatchObject(wrong);
    await expect(changes({ to, listMax: -1 })).rejects.toMatchObject(wrong);
    const wrongId = { code: "bad_request", facts: { field: "body.fromId" } };
    await expect(changes({ from: "../trees", to })).rejects.toMatchObject(wrongId);
  });
});
