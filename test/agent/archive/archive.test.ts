import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { Agent } from "../agent.ts";
import { codeOf, expectNothingLeft } from "../files/files.ts";
import { Archives, plain, treeOf, types } from "./archives.ts";

const MiB = 1024 * 1024;
const flags = {
  "application/x-tar": [],
  "application/gzip": ["-z"],
  "application/zstd": ["--zstd"],
};

describe("archives of an agent", () => {
  const agent = Agent.forBlock({ tree: "subreaper" });
  const archives = new Archives(agent);
  expectNothingLeft(agent, async () => {
    await agent.sh("mkdir warm");
    for (const type of types)
      await archives.put(`warm-${type.slice(12)}`, await archives.bytes("warm", type), type);
  });
  const pathOf = (name: string) => join(agent.workspace, name);
  const tar = (args: string[], input?: Buffer) =>
    spawnSync("tar", args, { ...(input === undefined ? {} : { input }), maxBuffer: 64 * MiB });

  /** Contains everything that an archive preserves. */
  const rich = async (name: string) => {
    const made = await agent.sh(
      [
        `mkdir -p ${name}/deep/er/still ${name}/empty '${name}/wörld and space'`,
        `cd ${name}; echo text > file; : > nothing; head -c 300000 /dev/urandom > large`,
        "chmod 4750 file; chmod 600 large; echo x > deep/er/still/x; ln file deep/hard; ln file zz",
        "ln -s ../file deep/up; ln -s er/still deep/down; ln -s nowhere dangling",
        `L=$(printf 'n%.0s' $(seq 200)); mkdir $L; echo long > $L/$L; ln -s $L/$L tolong`,
        "touch -d '1969-12-31 23:59:58.5 UTC' nothing; touch -d '2400-01-01 00:00:00.123456789 UTC' large",
        "touch -h -d '2001-02-03 04:05:06.000000007 UTC' deep/up; mkfifo fifo",
        "touch -d '2010-10-10 10:10:10.101010101 UTC' empty; chmod 555 deep/er; chmod 1777 empty",
        "touch -d '2011-11-11 11:11:11.111111111 UTC' deep/er deep .",
      ].join("; "),
    );
    expect(made).toMatchObject({ exitCode: 0, stderr: "" });
  };
  const withoutFifo = (lines: string[]) => lines.filter((line) => !line.startsWith("./fifo"));

  test.each(types)("[AR1] a tree goes down and up elsewhere as %s, and is equal", async (type) => {
    const name = `rich-${type.slice(12)}`;
    await rich(name);
    const response = await archives.get(name, `text/html, ${type};q=0.5`);
    expect(response.headers.get("content-type")).toBe(type);
    expect(response.headers.get("content-disposition")).toContain(`filename="${name}.tar`);
    const bytes = Buffer.from(await response.arrayBuffer());
    const before = withoutFifo(treeOf(pathOf(name)));
    expect(before.length).toBeGreaterThan(15);
    const put = await archives.put(`${name}-up`, bytes, type);
    expect(put.error, JSON.stringify(put)).toBeUndefined();
    expect(put.value).toEqual({ entries: before.length, bytes: 300_000 + 5 + 2 + 5 });
    expect(treeOf(pathOf(`${name}-up`))).toEqual(before);
  });

  test.each([
    [".", "workspace"],
    ["named/", "named"],
    ["named/../named/.", "named"],
    ["named/..", "archive"],
  ])("[AR13] the archive of %s is called %s", async (path, name) => {
    await agent.sh("mkdir -p named");
    const response = await archives.get(path, "application/gzip");
    await response.body?.cancel();
    const called = name === "workspace" ? basename(agent.workspace) : name;
    expect(response.headers.get("content-disposition")).toContain(`filename="${called}.tar.gz"`);
  });

  test.each(types)(
    "[AR2] the system's tar reads what is sent as %s, and what it packs is taken",
    async (type) => {
      const name = `sys-${type.slice(12)}`;
      await rich(name);
      const out = pathOf(`${name}-out`);
      mkdirSync(out);
      const bytes = await archives.bytes(name, type);
      const extract = ["-x", "-p", "--warning=no-timestamp", "-f", "-", ...flags[type], "-C", out];
      const untar = tar(extract, bytes);
      expect([String(untar.stderr), untar.status]).toEqual(["", 0]);
      const before = withoutFifo(treeOf(pathOf(name)));
      expect(treeOf(out)).toEqual(before);
      for (const format of ["pax", "gnu", "ustar"]) {
        const more =
          format === "ustar" ? ["--exclude=large", "--exclude=nothing", "--exclude=n*n"] : [];
        const args = ["-c", `--format=${format}`, ...more, "--exclude=fifo", ...flags[type]];
        const packed = tar([...args, "-f", "-", "-C", pathOf(name), "."]).stdout;
        const put = await archives.put(`${name}-${format}`, packed, type);
        expect(put.error, JSON.stringify(put.error)).toBeUndefined();
        const got = treeOf(pathOf(`${name}-${format}`), { times: format === "pax" });
        if (format !== "ustar") {
          expect(got).toEqual(withoutFifo(treeOf(pathOf(name), { times: format === "pax" })));
        } else expect(got.length).toBeGreaterThan(10);
      }
      rmSync(out, { recursive: true });
    },
  );

  test("[AR3] a single file is an archive of one member, and a link at the path is followed", async () => {
    await agent.sh("echo one > single; ln -s single to-single");
    for (const path of ["single", "to-single"]) {
      const { stdout } = tar(["-t", "-f", "-"], await archives.bytes(path));
      expect(String(stdout)).toBe(`./${path}\n`);
    }
    expect(await codeOf(await archives.get("absent"))).toBe("file_not_found");
    await agent.sh("mkfifo pipe");
    expect(await codeOf(await archives.get("pipe"))).toBe("not_a_file");
    expect(await codeOf(await archives.get("single", "text/html"))).toBe("bad_request");
    expect((await archives.put("x", "x", "text/plain")).code).toBe("unsupported_type");
  });

  test("[AR4] a folder that is not empty is filled member by member, and the last of a name wins", async () => {
    await agent.sh(
      "mkdir -p filled/sub; echo old > filled/sub/a; echo stays > filled/b; mkdir src; cd src; mkdir sub; echo new > sub/a; echo c > c; tar cf ../twice.tar .; echo newer > sub/a; tar rf ../twice.tar ./sub/a",
    );
    const put = await archives.put("filled", readFileSync(pathOf("twice.tar")));
    expect(put.status, JSON.stringify(put)).toBe(200);
    const { stdout } = await agent.sh("cd filled; cat sub/a b c; cat ../src/c");
    expect(stdout).toBe("newer\nstays\nc\nc\n");
  });

  test("[AR5] an empty folder is filled at once, and a process in it stays there", async () => {
    await agent.sh("mkdir hollow");
    const { ino } = statSync(pathOf("hollow"));
    await agent.sh("mkdir -p some/thing; echo x > some/thing/x");
    expect((await archives.put("hollow", await archives.bytes("some"))).status).toBe(200);
    expect(statSync(pathOf("hollow")).ino).toBe(ino);
    expect(readFileSync(pathOf("hollow/thing/x"), "utf8")).toBe("x\n");
    const bytes = await archives.bytes("some");
    expect((await archives.put("missing/deep", bytes)).code).toBe("file_not_found");
    expect((await archives.put("twice.tar", bytes)).code).toBe("not_a_folder");
    expect(plain).toBe(types[0]);
  });
});
