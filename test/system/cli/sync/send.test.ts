/** Tests that a sandbox gets a checkout exactly as it is: git's status and every file are equal on both sides. */
import { expect, it } from "vitest";
import type { Checkout } from "./checkout.ts";
import { useSyncPairs } from "./sync-pair.ts";

const { begun } = await useSyncPairs();

/**
 * The preparation of a checkout, and what `git status` must report, so that no case passes because nothing happened.
 */
type Shape = [title: string, arrange: (checkout: Checkout) => void, mentions: RegExp];

const bytes = Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7) % 256));

const shapes: Shape[] = [
  ["[SY1] sends a clean checkout", () => {}, /^$/],
  [
    "[SY1] sends a checkout with a detached HEAD",
    (of) => {
      of.commit("second", { "a.txt": "second\n" });
      of.git("checkout", "-q", "--detach", "HEAD~1");
      of.write("a.txt", "detached\n");
    },
    /a\.txt/,
  ],
  [
    "[SY1] sends a branch whose name is a path with other letters",
    (of) => void of.git("checkout", "-q", "-b", "feature/ü/x.y"),
    /^$/,
  ],
  [
    "[SY1] sends a merge in conflict, with both sides",
    (of) => {
      of.git("checkout", "-q", "-b", "other");
      of.commit("theirs", { "a.txt": "theirs\n", "new.txt": "new\n" });
      of.git("checkout", "-q", "main");
      of.write("a.txt", "ours\n");
      of.remove("b/c.txt");
      of.commit("ours");
      of.git("checkout", "-q", "other");
      of.commit("changed what the others removed", { "b/c.txt": "changed\n" });
      of.tryGit("merge", "-q", "main");
    },
    /u UU .*a\.txt.*u UD .*b\/c\.txt/,
  ],
  [
    "[SY1] sends a rebase in progress",
    (of) => {
      of.git("checkout", "-q", "-b", "topic");
      of.commit("topic", { "a.txt": "topic\n" });
      of.git("checkout", "-q", "main");
      of.commit("main", { "a.txt": "main\n" });
      of.git("checkout", "-q", "topic");
      of.tryGit("rebase", "-q", "main");
    },
    /u UU/,
  ],
  [
    "[SY2] sends staged, unstaged and untracked changes, alone and together",
    (of) => {
      of.write("a.txt", "staged\n");
      of.git("add", "a.txt");
      of.write("a.txt", "and changed again\n");
      of.write("b/c.txt", "unstaged\n");
      of.write("staged.txt", "new\n");
      of.git("add", "staged.txt");
      of.write("deep/er/untracked.txt", "untracked\n");
    },
    /1 MM .*a\.txt.*1 \.M .*b\/c\.txt.*1 A\. .*staged\.txt.*\? deep\/er\/untracked\.txt/,
  ],
  [
    "[SY2] sends staged and unstaged deletions, also of a file that is untracked again",
    (of) => {
      for (const name of ["one", "two", "three"]) of.write(name, `${name}\n`);
      of.commit("more");
      of.git("rm", "-q", "one");
      of.remove("two");
      of.git("rm", "-q", "--cached", "three");
    },
    /1 D\. .*one.*1 D\. .*three.*1 \.D .*two.*\? three/,
  ],
  [
    "[SY2] sends renames that were staged and changed afterwards",
    (of) => {
      of.commit("long", { "long.txt": "line\n".repeat(100) });
      of.git("mv", "long.txt", "moved.txt");
      of.write("moved.txt", `${"line\n".repeat(100)}more\n`);
    },
    /2 RM .*moved\.txt\|long\.txt/,
  ],
  [
    "[SY2] sends a file in place of a folder, and a folder in place of a file",
    (of) => {
      of.remove("b");
      of.write("b", "a file\n");
      of.remove("a.txt");
      of.write("a.txt/inside", "in a folder\n");
    },
    /1 \.D .*a\.txt.*1 \.D .*b\/c\.txt.*\? a\.txt\/inside.*\? b\|/,
  ],
  [
    "[SY2] sends a tracked folder that became a link, with the files behind it",
    (of) => {
      of.write("target/c.txt", "behind\n");
      of.remove("b");
      of.link("b", "target");
    },
    /1 \.D .*b\/c\.txt.*\? b\|/,
  ],
  [
    "[SY3] sends names of any kind",
    (of) => {
      const names = [" ", "-rf", "--", "sp ace", "q\"uo'te", "line\nend", "tab\there", "ünï/çödé"];
      for (const name of names) of.write(name, `${name}!\n`);
      for (const name of ["🚀.txt", "*", "\\", "$(x)", ":(top)a", "..x", "ends with space "]) {
        of.write(`n/${name}`, `${name}?\n`);
      }
      of.git("add", "--", "-rf", "line\nend");
      of.write("-rf", "changed\n");
      of.write(Buffer.from([0x6e, 0xff, 0x80, 0xfe]), "no UTF-8\n");
    },
    /-rf.*🚀\.txt/s,
  ],
  [
    "[SY3] sends bytes of any kind, in changed and in new files",
    (of) => {
      of.commit("binary", { binary: bytes });
      of.write("binary", Buffer.concat([bytes, bytes]));
      of.write("other.bin", bytes);
      of.write("empty", "");
    },
    /binary.*empty.*other\.bin/,
  ],
  [
    "[SY3] sends the executable bit, staged, changed and of new files",
    (of) => {
      of.write("tool", "#!/bin/sh\n");
      of.write("was", "#!/bin/sh\n", 0o755);
      of.commit("tools");
      of.write("tool", "#!/bin/sh\n", 0o755);
      of.write("was", "#!/bin/sh\n", 0o644);
      of.write("new", "#!/bin/sh\n", 0o755);
      of.git("add", "was");
    },
    /1 \.M N\.\.\. 100644 100644 100755 .*tool.*1 M\. N\.\.\. 100755 100644 100644 .*was/,
  ],
  [
    "[SY3] sends links as links, also dangling ones and ones out of the checkout",
    (of) => {
      of.link("to-file", "a.txt");
      of.link("to-folder", "b");
      of.commit("links");
      of.link("nowhere", "does/not/exist");
      of.link("out", "/etc/hostname");
      of.remove("to-file");
      of.link("to-file", "b/c.txt");
    },
    /1 \.M .*to-file.*\? nowhere.*\? out/,
  ],
  [
    "[SY4] sends line ends as they are on disk, even if git converts them",
    (of) => {
      of.git("config", "core.autocrlf", "true");
      of.commit("crlf", { "crlf.txt": "one\r\ntwo\r\n" });
      of.write("both.txt", "one\r\n");
      of.write("b/c.txt", "c\r\nchanged\r\n");
    },
    /b\/c\.txt.*both\.txt/,
  ],
  ...(
    [
      ["by a setting", "my attributes"],
      ["in the usual place", ".config/git/attributes"],
    ] as const
  ).map(
    ([where, path]): Shape => [
      `[SY4] attributes of all the owner's repositories, ${where}, travel, and those of the tree win over them`,
      (of) => {
        of.write(
          `../${path}`,
          "* text=auto\n*.own -text\n*.both text\n*.macro none\n[attr]none -text\n",
        );
        if (path === "my attributes")
          of.git("config", "--global", "core.attributesFile", "~/my attributes");
        of.write(".gitattributes", "*.tree -text\n*.own text\n");
        of.write(".git/info/attributes", "*.both -text\n");
        const endings = ["txt", "own", "tree", "both", "macro"];
        for (const end of endings) of.write(`crlf.${end}`, "one\r\ntwo\r\n");
        of.commit("crlf");
        for (const end of endings) of.write(`crlf.${end}`, "one\r\ntwo\r\n");
        const converted = of.git("ls-files", "--eol").match(/i\/lf .*crlf\.\w+/g) ?? [];
        expect(converted.map((line) => line.slice(-3))).toEqual(["own", "txt"]);
        of.write("a.txt", "changed\r\n");
      },
      /^1 \.M [^|]*a\.txt\|$/,
    ],
  ),
  [
    "[SY4] sends files as they are on disk, even if attributes convert them",
    (of) => {
      of.write(
        ".gitattributes",
        "*.dos eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n",
      );
      of.commit("attributes", {
        "x.dos": "one\r\ntwo\r\nthree\r\n",
        "x.id": "$Id$\n",
        "x.u16": Buffer.from("wide\n", "utf16le"),
      });
      of.remove("x.id");
      of.git("checkout", "-q", "--", "x.id");
      of.write("y.u16", Buffer.from("new\n", "utf16le"));
      of.write("x.dos", "one\r\ntwo\n");
    },
    /x\.dos.*y\.u16/,
  ],
  [
    "[SY4] sends files as they are on disk, even if a filter program converts them",
    (of) => {
      of.git("config", "filter.upper.clean", "tr a-z A-Z");
      of.git("config", "filter.upper.smudge", "tr A-Z a-z");
      of.commit("filtered", {
        ".gitattributes": "*.up filter=upper\n",
        "same.up": "same\n",
        "other.up": "other\n",
      });
      of.write("a.txt", "changed\n");
    },
    /a\.txt/,
  ],
  [
    "[SY5] sends the index flags intent-to-add, skip-worktree and assume-unchanged",
    (of) => {
      of.commit("more", { "left-out": "x\n", "set-aside": "x\n" });
      of.write("announced", "x\n");
      of.link("announced-link", "a.txt");
      of.git("add", "-N", "announced", "announced-link");
      of.git("update-index", "--skip-worktree", "left-out");
      of.remove("left-out");
      of.git("update-index", "--assume-unchanged", "set-aside");
      of.write("set-aside", "changed\n");
    },
    /1 \.A .*announced.*1 \.A N... 000000 000000 120000 .*announced-link/,
  ],
  [
    "[SY6] does not send ignored files, whichever list names them",
    (of) => {
      of.write(".gitignore", "ignored/\n*.log\n");
      of.write(".git/info/exclude", "private\n");
      of.write("../.config/git/ignore", "*.swp\n");
      of.write("forced.log", "tracked all the same\n");
      of.git("add", "-f", "forced.log", ".gitignore");
      of.git("commit", "-q", "-m", "lists");
      for (const name of ["ignored/x", "y.log", "private", "a.swp"]) of.write(name, "stays\n");
      of.write("forced.log", "changed\n");
      of.write("seen", "goes\n");
    },
    /forced\.log.*\? seen/,
  ],
  [
    "[SY10] sends a checkout before its first commit",
    (of) => {
      of.remove(".git");
      of.git("init", "-q", "-b", "begin");
      of.git("add", "a.txt");
      of.write("a.txt", "changed\n");
    },
    /1 AM .*a\.txt.*\? b\/c\.txt/,
  ],
  [
    "[SY10] sends an empty checkout",
    (of) => {
      for (const name of [".git", "a.txt", "b"]) of.remove(name);
      of.git("init", "-q", "-b", "begin");
    },
    /^$/,
  ],
  [
    "[SY10] sends a repository with SHA-256 ids",
    (of) => {
      of.remove(".git");
      of.git("init", "-q", "-b", "main", "--object-format=sha256");
      of.commit("longer");
      of.write("a.txt", "changed\n");
    },
    /[0-9a-f]{64}.*a\.txt/,
  ],
];

for (const [title, arrange, mentions] of shapes) {
  it(title, async () => {
    await using pair = await begun();
    arrange(pair.checkout);
    const here = pair.checkout.seen();
    expect(here.status).toMatch(mentions);
    const { sentBytes } = await pair.sync();
    expect(sentBytes).toBeGreaterThan(0);
    const there = await pair.seen();
    expect(there).toEqual(here);
    // The sync leaves nothing visible to the owner, and there is nothing left to send.
    expect(pair.checkout.seen()).toEqual(here);
    expect((await pair.sync()).sentBytes).toBe(0);
    expect(await pair.seen()).toEqual(here);
  });
}
