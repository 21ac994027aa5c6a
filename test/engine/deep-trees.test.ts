/** Snapshots of trees with paths that no system call takes at once: very deep ones, and long ones below a long data folder. */
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { until } from "../until.ts";
import { identities, newId, type RunningSandbox, run, sharedEngine } from "./test-engine.ts";
import { python } from "./workspaces.ts";

const depth = 5_000;
const sparseBytes = 3_000_000;

describe.each(identities())("deep trees of an engine that is %s", (as) => {
  const engine = sharedEngine(as);
  const make = (sandbox: RunningSandbox) => python(sandbox, makeTree);
  const describeTree = (sandbox: RunningSandbox) => python(sandbox, describeChains);

  it(`[H31] ${depth} nested folders, and paths near the limit of the kernel, are saved, restored and forked`, async () => {
    const sandbox = await run(engine);
    await make(sandbox);
    const before = await describeTree(sandbox);
    expect(Number(before.split(" ")[0])).toBeGreaterThan(depth);
    const snapshotId = newId();
    const { bytes } = await sandbox.container.snapshot(snapshotId);
    expect(bytes).toBeGreaterThan(depth);
    expect(readdirSync(`${engine.data}/snapshots/${snapshotId}`).sort()).toEqual([
      "packages",
      "root",
      "usr",
      "workspace",
    ]);
    await sandbox.sh("rm -r /workspace/long; echo changed > /workspace/words");
    const restored = await run(engine, { id: sandbox.id, snapshot: snapshotId });
    expect(await describeTree(restored)).toBe(before);
    const fork = await run(engine, { snapshot: snapshotId });
    expect(await describeTree(fork)).toBe(before);
    await fork.container.destroy("remove");
    await fork.container.removeSnapshot(snapshotId);
    const isEmpty = () => readdirSync(`${engine.data}/trash`).length === 0;
    await until("the trash is empty", isEmpty, 90_000);
  });
});

/** Two chains of folders: one deep, one whose last path fits into the kernel's limit only from inside the sandbox. */
const makeTree = `
import os
def entries():
    with open("words", "w") as f: f.write("some words")
    os.link("words", "again")
    os.symlink("words", "link")
    os.mkfifo("pipe")
    with open("sparse", "w") as f: f.truncate(${sparseBytes})
    os.setxattr("words", "user.berth", b"value")
    os.chmod("words", 0o640)
    os.utime("words", ns=(1, 981173106123456789))
os.chdir("/workspace")
entries()
for name, count in (("d", ${depth}), ("long" + "g" * 196, 20)):
    os.chdir("/workspace")
    for n in range(count):
        os.mkdir(name if n else name[:4])
        os.chdir(name if n else name[:4])
    entries()
    os.chdir("/workspace")
os.utime("/workspace/d", ns=(1, 1))
`;

/** Follows both chains by one name after the other. */
const describeChains = `
import hashlib, os, stat
lines = []
for first in ("d", "long"):
    os.chdir("/workspace")
    level, below = 0, first
    while below:
        os.chdir(below)
        level, below = level + 1, ""
        for name in sorted(os.listdir(".")):
            s = os.lstat(name)
            folder = stat.S_ISDIR(s.st_mode)
            content = ""
            if stat.S_ISREG(s.st_mode): content = hashlib.sha256(open(name, "rb").read()).hexdigest() + str(os.listxattr(name))
            if stat.S_ISLNK(s.st_mode): content = os.readlink(name)
            lines.append(str((level, name, s.st_mode, s.st_uid, 0 if folder else s.st_size, s.st_nlink, s.st_mtime_ns, content)))
            if folder: below = name
print(len(lines), hashlib.sha256("".join(lines).encode()).hexdigest())
`;
