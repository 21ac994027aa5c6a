/** Workspaces for tests of changes: applies random deeds inside a sandbox and lists every entry as seen from inside. */
import fc from "fast-check";
import type { TreeEntries } from "../fakes/changes.ts";
import { applyScript, type TreeChange, treeChange } from "../system/files/workspace.ts";
import type { RunningSandbox } from "./test-engine.ts";

export type { TreeChange };

/** Deeds below /workspace only. No time is set twice: see compare.ts for changes that would be missed. */
export function deeds(half: 0 | 1, max: number): fc.Arbitrary<TreeChange[]> {
  const all = fc.array(treeChange, { minLength: 40, maxLength: max });
  return all.map((deeds) =>
    deeds.map(([what, ...details], index): TreeChange => {
      const moved = details.map((detail) =>
        typeof detail === "string" ? inWorkspace(detail) : detail,
      );
      if (what === "time")
        moved[2] = Number(moved[2]) - (Number(moved[2]) % 256) + index * 2 + half;
      return [what, ...moved];
    }),
  );
}

function inWorkspace(path: string): string {
  const text = Buffer.from(path, "hex").toString("latin1");
  const moved = text.replace(/^\/(home\/berth|var\/tmp)\//, "/workspace/");
  return Buffer.from(moved, "latin1").toString("hex");
}

/** Returns how many succeeded. */
export async function applyDeeds(sandbox: RunningSandbox, all: TreeChange[]): Promise<number> {
  return Number(await python(sandbox, applyScript, JSON.stringify(all)));
}

export async function entriesOf(sandbox: RunningSandbox): Promise<TreeEntries> {
  const lines = (await python(sandbox, listEntries)).split("\n").filter(Boolean);
  return new Map(
    lines.map((line) => {
      const [path, kind, bytes, content] = JSON.parse(line) as [string, string, number, string];
      const name = Buffer.from(path, "hex").toString("latin1");
      return [name, { isFolder: kind === "folder", bytes, content }];
    }),
  );
}

export async function python(sandbox: RunningSandbox, script: string, stdin = ""): Promise<string> {
  const [code, given] = [script, stdin].map((text) => Buffer.from(text).toString("base64"));
  const command = `echo ${given} | base64 -d | python3 -c "$(echo ${code} | base64 -d)"`;
  const { exitCode, stdout, stderr } = await sandbox.sh(command, 60_000);
  if (exitCode !== 0) throw new Error(`python ended with ${exitCode}: ${stderr}`);
  return stdout;
}

/** The owner opens closed files to read them and closes them again; neither counts as a change. */
const listEntries = `
import hashlib, json, os, stat
top = b"/workspace"
def look(at):
    s = os.lstat(at)
    kind, m = stat.S_IFMT(s.st_mode), stat.S_IMODE(s.st_mode)
    closed = kind in (stat.S_IFDIR, stat.S_IFREG) and (m & 0o500) != 0o500
    if closed: os.chmod(at, m | 0o700)
    try:
        what, extra = "", []
        if kind == stat.S_IFLNK: what = os.readlink(at).hex()
        if kind == stat.S_IFREG:
            with open(at, "rb") as f: what = hashlib.sha256(f.read()).hexdigest()
        if kind in (stat.S_IFDIR, stat.S_IFREG):
            for name in sorted(os.listxattr(at)): extra.append((name.encode(errors="surrogateescape").hex(), os.getxattr(at, name).hex()))
        content = str((kind, m, s.st_uid, s.st_gid, what, extra))
        size = s.st_size if kind == stat.S_IFREG else 0
        print(json.dumps([at[len(top) + 1:].hex(), "folder" if kind == stat.S_IFDIR else "other", size, content]))
        if kind == stat.S_IFDIR:
            for name in sorted(os.listdir(at)): look(os.path.join(at, name))
    finally:
        if closed: os.chmod(at, m)
look(top)
`;
