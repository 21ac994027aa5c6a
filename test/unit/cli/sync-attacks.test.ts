/** Tests that a lying sandbox cannot write outside of the checkout, into its repository, or over ignored files. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readCheckoutState as describeState } from "../../../src/cli/sync/checkout-state.ts";
import { openRepository } from "../../../src/cli/sync/repository.ts";
import { type Baseline, pull } from "../../../src/cli/sync/sync.ts";
import { Checkout } from "../../system/cli/sync/checkout.ts";

type Entry = { mode: string; name: string; id: string };

/** Builds packs that git itself would not build. */
class Liar {
  readonly #objects = new Map<string, { kind: number; content: Buffer }>();

  blob(text: string): string {
    return this.#add("blob", 3, Buffer.from(text));
  }

  /** Neither sorted nor checked. */
  tree(entries: Entry[]): string {
    const parts = entries.map(({ mode, name, id }) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`, "latin1"), Buffer.from(id, "hex")]),
    );
    return this.#add("tree", 2, Buffer.concat(parts));
  }

  pack(): Buffer {
    const head = Buffer.alloc(12);
    head.write("PACK");
    head.writeUInt32BE(2, 4);
    head.writeUInt32BE(this.#objects.size, 8);
    const parts = [head];
    for (const { kind, content } of this.#objects.values()) {
      let size = content.byteLength;
      const bytes = [(kind << 4) | (size & 15)];
      for (size = Math.floor(size / 16); size > 0; size = Math.floor(size / 128)) {
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 0x80;
        bytes.push(size & 127);
      }
      parts.push(Buffer.from(bytes), deflateSync(content));
    }
    const body = Buffer.concat(parts);
    return Buffer.concat([body, createHash("sha1").update(body).digest()]);
  }

  #add(word: string, kind: number, content: Buffer): string {
    const object = Buffer.concat([Buffer.from(`${word} ${content.byteLength}\0`), content]);
    const id = createHash("sha1").update(object).digest("hex");
    this.#objects.set(id, { kind, content });
    return id;
  }
}

/** Returns these bytes for every exec. */
function sandboxSaying(output: Buffer) {
  const stdout = output.toString("base64");
  const result = { exitCode: 0, stdout, stderr: "", truncated: false, timedOut: false };
  return { exec: async () => result } as never;
}

async function baselineOf(of: Checkout): Promise<Baseline> {
  const { files } = await describeState(await openRepository(of.root));
  return [{ folder: "/workspace", below: "", files }];
}

async function pullLie(of: Checkout, lie: (liar: Liar) => string) {
  const baseline = await baselineOf(of);
  const liar = new Liar();
  const tree = lie(liar);
  const pack = liar.pack();
  const output = Buffer.concat([Buffer.from(`0 again =\n${tree} ${pack.byteLength}\n`), pack]);
  return await pull(sandboxSaying(output), of.root, baseline);
}

/** Everything below the owner's folder with its content, without our store and the index. */
function all(of: Checkout): string {
  const each = `for f; do stat -c "%A %n" -- "$f"; [ -f "$f" ] && sha256sum -- "$f"; done`;
  const excluded = "-path ./code/.git/berth -prune -o -path ./code/.git/index -o";
  const script = `find . ${excluded} -print0 | sort -z | xargs -0 sh -c '${each}' sh`;
  return spawnSync("sh", ["-c", script, "sh"], { cwd: of.folder }).stdout.toString();
}

/** A file in nested folders of these names. */
const chain = (liar: Liar, names: string[], text = "evil\n"): string => {
  const [name = "", ...rest] = names;
  if (rest.length === 0) return liar.tree([{ mode: "100755", name, id: liar.blob(text) }]);
  return liar.tree([{ mode: "40000", name, id: chain(liar, rest, text) }]);
};

const paths: string[][] = [
  ["..", "evil"],
  ["b", "..", "..", "evil"],
  ["."],
  [".", "evil"],
  ["../evil"],
  ["/tmp/evil-of-a-test"],
  ["b/../../evil"],
  [".git", "hooks", "pre-commit"],
  [".GIT", "config"],
  [".Git", "config"],
  [".git ", "config"],
  [".git.", "config"],
  [".git...", "config"],
  [".git::$INDEX_ALLOCATION", "config"],
  ["git~1", "config"],
  [Buffer.from(".g\u200cit").toString("latin1"), "config"],
  [Buffer.from("\ufeff.git").toString("latin1"), "config"],
  ["b", ".git", "config"],
  ["sub", "module", ".git"],
  ["x".repeat(256)],
];

describe("a lying sandbox", () => {
  it("[SY24] cannot write out of the checkout or into its repository by any name", async () => {
    using of = Checkout.begun();
    of.write("../evil", "mine\n");
    const before = all(of);
    expect(before).toMatch(/code\/a\.txt/);
    for (const path of paths) {
      const pulled = await pullLie(of, (liar) => chain(liar, path)).catch(
        (error: unknown) => error,
      );
      const refused = (pulled as { refused?: { path: string }[] }).refused;
      // Git itself may break off at it: then nothing at all came.
      if (refused === undefined) expect(pulled).toMatchObject({ code: "pull_failed" });
      else expect(refused.length).toBeGreaterThan(0);
      // What the lie left out it claims to have removed: that alone it may.
      of.git("checkout", "-q", "--", ".");
      expect({ path, all: all(of) }).toEqual({ path, all: before });
    }
  });

  it("[SY24] cannot write through a link, neither an existing nor a sent one", async () => {
    using of = Checkout.begun();
    of.write("../secret/keys", "mine\n");
    of.link("old", "../secret");
    const pulled = await pullLie(of, (liar) => {
      const evil = liar.tree([{ mode: "100644", name: "keys", id: liar.blob("evil\n") }]);
      const target = liar.blob("../secret");
      return liar.tree([
        { mode: "120000", name: "new", id: target },
        { mode: "40000", name: "new", id: evil },
        { mode: "120000", name: "old", id: target },
        { mode: "40000", name: "old", id: evil },
      ]);
    });
    expect(pulled.changed).not.toContain("new/keys");
    expect(pulled.changed).not.toContain("old/keys");
    expect(of.read("../secret/keys")).toBe("mine\n");
    expect(readdirSync(of.path("../secret"))).toEqual(["keys"]);
  });

  it("[SY24] cannot write over ignored files or into a nested repository", async () => {
    using of = Checkout.begun({ ".gitignore": ".env\nnode_modules/\n", "a.txt": "a\n" });
    of.write(".env", "mine\n");
    of.write("node_modules/x", "mine\n");
    of.gitAt(of.root, "init", "-q", "inner");
    const before = all(of);
    const ignore = of.read(".gitignore");
    const pulled = await pullLie(of, (liar) => {
      const evil = liar.blob("evil\n");
      const below = liar.tree([{ mode: "100644", name: "x", id: evil }]);
      return liar.tree([
        { mode: "100644", name: ".env", id: evil },
        { mode: "100644", name: ".gitignore", id: liar.blob(ignore) },
        { mode: "100644", name: "a.txt", id: liar.blob("a\n") },
        { mode: "40000", name: "inner", id: below },
        { mode: "40000", name: "node_modules", id: below },
      ]);
    });
    expect(pulled).toMatchObject({ changed: [], conflicts: [] });
    expect(pulled.refused.map(({ path }) => path)).toEqual(["inner/x"]);
    expect(all(of)).toBe(before);
  });

  it("[SY24] cannot send what is neither a file nor a link", async () => {
    using of = Checkout.begun({});
    const pulled = await pullLie(of, (liar) =>
      liar.tree([
        { mode: "160000", name: "module", id: "1".repeat(40) },
        { mode: "100644", name: "z", id: liar.blob("fine\n") },
      ]),
    );
    expect(pulled.refused).toEqual([{ path: "module", why: expect.stringMatching(/neither/) }]);
    expect(pulled.changed).toEqual(["z"]);
  });

  const answers: [title: string, output: (real: Buffer, tree: string) => Buffer][] = [
    ["[SY25] an empty answer", () => Buffer.alloc(0)],
    ["[SY25] an answer in other words", () => Buffer.from("hello\nworld\n")],
    ["[SY25] a tree that is no id", () => Buffer.from("0 again =\n--upload-pack=x 5\nhello")],
    [
      "[SY25] a tree that did not come along",
      () => Buffer.from(`0 again =\n${"1".repeat(40)} 0\n`),
    ],
    [
      "[SY25] commits without an end",
      (real) => Buffer.concat([Buffer.from(`0 again ${"9".repeat(12)}`), real.subarray(9)]),
    ],
    ["[SY25] a pack that breaks off", (real) => real.subarray(0, real.byteLength - 30)],
    [
      "[SY25] a pack that is larger than any limit",
      (_, tree) => Buffer.from(`0 again =\n${tree} 99999999999999\n`),
    ],
    [
      "[SY25] a pack with a byte turned",
      (real) => {
        const bad = Buffer.from(real);
        bad[bad.byteLength - 40] = (bad.at(-40) ?? 0) ^ 0xff;
        return bad;
      },
    ],
  ];
  for (const [title, output] of answers) {
    it(`${title} fails and changes nothing`, async () => {
      using of = Checkout.begun();
      const baseline = await baselineOf(of);
      const liar = new Liar();
      const tree = chain(liar, ["fine"]);
      const pack = liar.pack();
      const head = Buffer.from(`0 again =\n${tree} ${pack.byteLength}\n`);
      const lie = output(Buffer.concat([head, pack]), tree);
      const before = all(of);
      const pulled = pull(sandboxSaying(lie), of.root, baseline);
      await expect(pulled).rejects.toMatchObject({ code: expect.stringMatching(/^pull_/) });
      expect(all(of)).toBe(before);
    });
  }

  it("[SY25] a tree without its contents fails and changes nothing", async () => {
    using of = Checkout.begun();
    const before = all(of);
    const pulled = pullLie(of, (liar) =>
      liar.tree([{ mode: "100644", name: "x", id: "2".repeat(40) }]),
    );
    await expect(pulled).rejects.toMatchObject({ code: "pull_failed" });
    expect(all(of)).toBe(before);
  });
});
