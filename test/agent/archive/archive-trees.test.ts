import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { Agent } from "../agent.ts";
import { unfinished } from "../files/files.ts";
import { Archives, treeOf, types } from "./archives.ts";

type Node =
  | { kind: "file"; size: number; seed: number; mode: number; ns: bigint }
  | { kind: "link"; says: string; ns: bigint }
  | { kind: "hard" }
  | { kind: "folder"; mode: number; ns: bigint; nodes: Map<string, Node> };

/** Raw names: any byte but slash and NUL, sometimes as long as a name may be. */
const nameByte = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(..."abcXYZ012.-_ ") },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 255 }).map((n) => String.fromCharCode(n)) },
);
const name = fc
  .oneof(
    { weight: 9, arbitrary: fc.array(nameByte, { minLength: 1, maxLength: 12 }) },
    { weight: 1, arbitrary: fc.array(nameByte, { minLength: 90, maxLength: 255 }) },
  )
  .map((bytes) => bytes.join(""))
  .filter(
    (text) => text !== "." && text !== ".." && !text.includes("/") && !text.startsWith(".berth-"),
  );
const ns = fc.bigInt({ min: -1_500_000_000_000_000_000n, max: 9_000_000_000_000_000_000n });
const file = fc.record({
  kind: fc.constant("file" as const),
  size: fc.oneof(
    fc.integer({ min: 0, max: 1100 }),
    fc.constantFrom(0, 512, 65_536, 65_537, 300_001),
  ),
  seed: fc.integer({ min: 0, max: 255 }),
  mode: fc.integer({ min: 0, max: 0o7777 }).map((mode) => mode | 0o400),
  ns,
});
const link = fc.record({
  kind: fc.constant("link" as const),
  says: fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/")),
  ns,
});
const { folder } = fc.letrec<{ node: Node; folder: Extract<Node, { kind: "folder" }> }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    file,
    link,
    fc.constant<Node>({ kind: "hard" }),
    tie("folder"),
  ),
  folder: fc.record({
    kind: fc.constant("folder" as const),
    mode: fc.integer({ min: 0, max: 0o7777 }).map((mode) => mode | 0o500),
    ns,
    nodes: fc
      .uniqueArray(fc.tuple(name, tie("node")), { maxLength: 6, selector: ([own]) => own })
      .map((pairs) => new Map(pairs)),
  }),
}));

/** Creates the tree as a command of the sandbox would: owned by its user, with any modes. */
function scriptOf(root: Node): string {
  const lines = ["set -e"];
  const files: string[] = [];
  const touch = (path: string, modifiedNs: bigint) => {
    const nano = ((modifiedNs % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
    const seconds = (modifiedNs - nano) / 1_000_000_000n;
    lines.push(`touch -h -d @${seconds}.${String(nano).padStart(9, "0")} ${path}`);
  };
  const make = (node: Node, raw: string) => {
    const path = quoted(raw);
    switch (node.kind) {
      case "file":
        lines.push(
          `head -c ${node.size} /dev/zero | tr '\\0' '\\${node.seed.toString(8)}' > ${path}`,
        );
        lines.push(`chmod ${node.mode.toString(8)} ${path}`);
        touch(path, node.ns);
        files.push(path);
        return;
      case "link":
        lines.push(`ln -s -- ${quoted(node.says)} ${path}`);
        touch(path, node.ns);
        return;
      case "hard": {
        const to = files.at(-1);
        if (to !== undefined) lines.push(`ln -- ${to} ${path}`);
        return;
      }
      case "folder":
        lines.push(`mkdir ${path}`);
        for (const [own, below] of node.nodes) make(below, `${raw}/${own}`);
        touch(path, node.ns);
        lines.push(`chmod ${node.mode.toString(8)} ${path}`);
    }
  };
  make(root, "./tree");
  return lines.join("\n");
}

function quoted(raw: string): string {
  const bytes = [...Buffer.from(raw, "latin1")];
  return `$'${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}'`;
}

describe("any tree", () => {
  const agent = Agent.forBlock({ tree: "subreaper" });
  const archives = new Archives(agent);
  afterAll(() => expect(unfinished(agent)).toEqual([]));
  const clear = () => {
    for (const it of readdirSync(agent.workspace)) {
      rmSync(join(agent.workspace, it), { recursive: true });
    }
  };

  test("[AR1] is equal after a download and an upload to a missing or an empty folder", async () => {
    let entries = 0;
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        folder,
        fc.constantFrom(...types),
        fc.boolean(),
        async (tree, type, empty) => {
          clear();
          const made = await agent.exec({ argv: ["bash"], stdin: scriptOf(tree) });
          expect(made).toMatchObject({ exitCode: 0, stderr: "" });
          const before = treeOf(join(agent.workspace, "tree"));
          if (empty) await agent.sh("mkdir up");
          const put = await archives.put("up", await archives.bytes("tree", type), type);
          expect(put.value?.entries, JSON.stringify(put)).toBe(before.length);
          expect(treeOf(join(agent.workspace, "up"))).toEqual(before);
          entries += before.length;
          for (const line of before) seen.add(/ -> /.test(line) ? "link" : "other");
        },
      ),
      { numRuns: 60 },
    );
    clear();
    mkdirSync(join(agent.workspace, "done"));
    expect(entries).toBeGreaterThan(120);
    expect(seen.size).toBe(2);
  });
});
