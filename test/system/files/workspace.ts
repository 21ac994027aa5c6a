/**
 * Writes random trees in a sandbox, reads all that can be seen of a tree, and pauses copies that the engine makes.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { onTestFinished } from "vitest";
import { until } from "../../until.ts";
import { procFile } from "../processes.ts";
import type { RunningServer } from "../server.ts";

const catchMs = 60_000;
const settleMs = 120_000;

export type TreeChange = [what: string, ...details: (string | number)[]];

export async function runPython(
  server: RunningServer,
  id: string,
  script: string,
  stdin = "",
): Promise<string> {
  const call = { argv: ["python3", "-c", script], stdin, timeoutMs: 120_000 };
  const more = { maxOutputBytes: 16 * 1024 * 1024 };
  const path = `/v1/sandboxes/${id}/exec`;
  const { status, body } = await server.call("POST", path, { ...call, ...more });
  if (status !== 200 || body.exitCode !== 0) {
    throw new Error(`${status} ${JSON.stringify(body).slice(0, 2000)}`);
  }
  return String(body.stdout);
}

/** Does as many of the deeds as possible, and returns how many that were. */
export async function applyChanges(
  server: RunningServer,
  id: string,
  deeds: TreeChange[],
): Promise<number> {
  return Number(await runPython(server, id, applyScript, JSON.stringify(deeds)));
}

/** Everything that a restore must bring back, a line for each entry. */
export async function treeSnapshot(server: RunningServer, id: string): Promise<string> {
  return await runPython(server, id, snapshotScript);
}

/** Fills the workspace with so many files, of which every one says its version, as does the name of their folder. */
export async function writeVersion(
  server: RunningServer,
  id: string,
  version: number,
  files: number,
): Promise<void> {
  const script = `
import os, shutil
for name in os.listdir("/workspace"): shutil.rmtree("/workspace/" + name)
os.mkdir("/workspace/all"); os.mkdir("/workspace/only-${version}")
for n in range(${files}): open(f"/workspace/all/{n}", "w").write("${version}")
open("/workspace/only-${version}/file", "w").write("${version}")
`;
  await runPython(server, id, script);
}

/** What `versionContent` describes, if the tree is whole. */
export async function readVersion(server: RunningServer, id: string): Promise<string> {
  const script = `
import os
found = []
for folder, _, names in os.walk("/workspace"): found += [open(f"{folder}/{name}").read() for name in names]
print(len(found), sorted(set(found)), sorted(os.listdir("/workspace")))
`;
  return (await runPython(server, id, script)).trim();
}

export function versionContent(version: number, files: number): string {
  return `${files + 1} ['${version}'] ['all', 'only-${version}']`;
}

export async function post(server: RunningServer, id: string, what: string, body?: unknown) {
  return await server.call("POST", `/v1/sandboxes/${id}/${what}`, body);
}

export async function checkpoint(server: RunningServer, id: string, name = "one"): Promise<string> {
  const made = await post(server, id, "checkpoints", { name });
  if (made.status !== 201) throw new Error(`${made.status} ${JSON.stringify(made.body)}`);
  return String(made.body.id);
}

export async function restore(server: RunningServer, id: string, from: string): Promise<void> {
  const done = await post(server, id, `checkpoints/${from}/restore`);
  if (done.status >= 300) throw new Error(`${done.status} ${JSON.stringify(done.body)}`);
  await settled(server, id, "running");
}

/** Calls that change a state are answered after a while in any case; where much is to be done it comes later. */
export async function settled(server: RunningServer, id: string, state: string): Promise<void> {
  const holds = async () => {
    const { body } = await server.call("GET", `/v1/sandboxes/${id}`);
    if (body.state === "failed") throw new Error(JSON.stringify(body));
    return body.state === state;
  };
  await until(`${id} is ${state}`, holds, settleMs);
}

export async function listed(server: RunningServer, id: string): Promise<string[]> {
  const { body } = await server.call("GET", `/v1/sandboxes/${id}/checkpoints`);
  return (body.checkpoints as { id: string }[]).map((checkpoint) => checkpoint.id);
}

/** The entries of a folder of the engine. */
export function engineEntries(
  server: { data: string },
  folder: "trees" | "snapshots" | "trash",
): string[] {
  return readdirSync(join(server.data, "engine", folder)).sort();
}

export function trashIsEmpty(server: { data: string }): Promise<void> {
  return until("the trash is empty", () => engineEntries(server, "trash").length === 0, settleMs);
}

/** Stops the next copy of a tree, of this sandbox or of any, in the middle. It continues when the test is over. */
export async function pauseCopy(
  server: RunningServer,
  id?: string,
): Promise<{ pid: number; resume: () => void }> {
  const engine = server.engine.pid;
  const isWanted = (pid: number) =>
    id === undefined || procFile(pid, "cmdline").includes(`/${id}/`);
  const pid = await waitForPid("a copy", () => copiesOf(engine).find(isWanted));
  process.kill(pid, "SIGSTOP");
  const resume = () => {
    try {
      process.kill(pid, "SIGCONT");
    } catch {
      // It has ended, as the operation that it copied for has.
    }
  };
  onTestFinished(resume);
  await until("it stands still", () => /^State:\s+T/m.test(procFile(pid, "status")));
  return { pid, resume };
}

/** Polls without a pause, because the process may live for a few milliseconds. */
async function waitForPid(what: string, find: () => number | undefined): Promise<number> {
  const limit = performance.now() + catchMs;
  for (;;) {
    const pid = find();
    if (pid !== undefined) return pid;
    if (performance.now() > limit) throw new Error(`never seen: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Programs that copy trees for this engine. */
export function copiesOf(engine: number): number[] {
  const children = procFile(engine, `task/${engine}/children`);
  return children
    .split(" ")
    .filter(Boolean)
    .map(Number)
    .filter((pid) => procFile(pid, "cmdline").startsWith("cp\0"));
}

/** Names as bytes, in hex: spaces, line ends, dashes, what is no UTF-8, long ones. */
const name = fc.oneof(
  fc.constantFrom("a", "b", "c", "d").map(hex),
  fc.constantFrom(" ", "-rf", "x\ny", "ünï", "..x", "*", "\\", "w".repeat(255)).map(hex),
  fc.constant("ff80fe"),
);
/** Paths of at most two levels below one of the folders that are saved. */
const path = fc
  .tuple(
    fc.constantFrom("/workspace", "/home/berth", "/var/tmp"),
    fc.array(name, { minLength: 1, maxLength: 3 }),
  )
  .map(([folder, names]) => [hex(folder), ...names].join("2f"));
const mode = fc.constantFrom(0o000, 0o400, 0o644, 0o755, 0o700, 0o1777, 0o4755, 0o2770);
const size = fc.constantFrom(0, 1, 4095, 4096, 4097, 70_000);

export const treeChange: fc.Arbitrary<TreeChange> = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constant("write"), path, fc.nat(255), size) },
  { weight: 4, arbitrary: fc.tuple(fc.constant("folder"), path) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("mode"), path, mode) },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constant("time"), path, fc.nat(2_000_000_000), fc.nat(999_999_999)),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant("symlink"), path, fc.oneof(path, name)) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("link"), path, path) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("attribute"), path, name, size) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("sparse"), path, fc.nat(9_000_000)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("pipe"), path) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("move"), path, path) },
  { weight: 3, arbitrary: fc.tuple(fc.constant("remove"), path) },
);

function hex(text: string): string {
  return Buffer.from(text).toString("hex");
}

export const applyScript = `
import json, os, shutil, sys
def p(text): return bytes.fromhex(text)
# A pipe that nobody reads is refused and not waited for.
def make(at): return os.fdopen(os.open(at, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o666), "wb")
done = 0
for what, at, *more in json.load(sys.stdin):
    at = p(at)
    try:
        if what == "write":
            with make(at) as f: f.write(bytes([more[0]]) * more[1])
        elif what == "folder": os.makedirs(at)
        elif what == "mode": os.chmod(at, more[0])
        elif what == "time": os.utime(at, ns=(1, more[0] * 10**9 + more[1]), follow_symlinks=False)
        elif what == "symlink": os.symlink(p(more[0]), at)
        elif what == "link": os.link(p(more[0]), at, follow_symlinks=False)
        elif what == "attribute": os.setxattr(at, b"user." + p(more[0])[:100], b"v" * min(more[1], 1000))
        elif what == "sparse":
            with make(at) as f: f.truncate(more[0]); f.seek(more[0] // 2); f.write(b"mid")
        elif what == "pipe": os.mkfifo(at)
        elif what == "move": os.rename(at, p(more[0]))
        elif what == "remove":
            if os.path.isdir(at) and not os.path.islink(at): shutil.rmtree(at)
            else: os.unlink(at)
        done += 1
    except (OSError, ValueError): pass
print(done)
`;

/** Owner that it is, it opens for its look what is closed, and closes it again: neither moves a time of change. */
const snapshotScript = `
import hashlib, os, stat, sys
groups, lines = {}, []
def attributes(at):
    out = []
    for name in sorted(os.listxattr(at, follow_symlinks=False)):
        out.append((os.fsencode(name).hex(), os.getxattr(at, name, follow_symlinks=False).hex()))
    return out
def look(at):
    s = os.lstat(at)
    kind, m = stat.S_IFMT(s.st_mode), stat.S_IMODE(s.st_mode)
    closed = kind in (stat.S_IFDIR, stat.S_IFREG) and (m & 0o500) != 0o500 and s.st_uid == os.getuid()
    if closed: os.chmod(at, m | 0o700)
    try:
        what = ""
        if kind == stat.S_IFLNK: what = os.readlink(at).hex()
        if kind == stat.S_IFREG:
            with open(at, "rb") as f: what = hashlib.sha256(f.read()).hexdigest()
        same = groups.setdefault((s.st_dev, s.st_ino), at.hex()) if kind == stat.S_IFREG else ""
        size = s.st_size if kind != stat.S_IFDIR else 0
        links = s.st_nlink if kind != stat.S_IFDIR else 0
        extra = attributes(at) if kind in (stat.S_IFDIR, stat.S_IFREG) else ""
        lines.append(" ".join(str(x) for x in (at.hex(), oct(s.st_mode), s.st_uid, s.st_gid, links, size, s.st_mtime_ns, what, same, extra)))
        if kind == stat.S_IFDIR:
            for name in sorted(os.listdir(at)): look(os.path.join(at, name))
    finally:
        if closed: os.chmod(at, m)
for place in (b"/workspace", b"/home/berth", b"/var/tmp"): look(place)
print("\\n".join(lines))
`;
