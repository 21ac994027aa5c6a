import { randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseCopyPath } from "../../../src/cli/copy/copy-path.ts";
import { CutProxy } from "../client/cut-proxy.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { until } from "../until.ts";
import { Person } from "./cli-user.ts";

describe("copying", () => {
  let server: SharedServer;
  let person: Person;
  let id: string;
  beforeAll(async () => {
    server = await useSharedServer();
    person = new Person(server);
    id = await server.create();
  });
  afterAll(async () => {
    person[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const cp = async (from: string, to: string, cwd: string) =>
    await person.berth(["cp", "--id", id, from, to], { cwd });
  const folder = (name: string) => {
    const path = join(person.home, name);
    mkdirSync(path, { recursive: true });
    return path;
  };

  it("[CL2] what this machine or the sandbox refuses of a copy is told with what to do about that", async () => {
    const cwd = folder("refused");
    expect((await server.exec(id, "echo there > there")).body.exitCode).toBe(0);
    const here = await cp(":there", "/proc/here", cwd);
    expect(here).toMatchObject({ code: 1, stdout: "" });
    expect(here.stderr).toMatch(/^error: E[A-Z]+: .*\nhint: This user must be allowed .*\n$/);
    const there = await cp(":nowhere", ".", cwd);
    expect(there).toMatchObject({ code: 1, stdout: "" });
    expect(there.stderr).toMatch(/^error: \/workspace\/nowhere .*\nhint: `berth exec -- ls` .*\n$/);
    const local = await cp("nowhere", ":", cwd);
    expect(local.stderr).toMatch(/^error: there is no nowhere here\nhint: .*:nowhere.*\n$/);
  });

  it("[CL22] brings a folder there and back as it is: modes, links, empty folders, any name", async () => {
    const cwd = folder("there-and-back");
    const made = folder("there-and-back/made");
    const bytes = randomBytes(300_000);
    writeFileSync(join(made, "bytes"), bytes);
    writeFileSync(join(made, "run"), "#!/bin/sh\n", { mode: 0o755 });
    writeFileSync(join(made, " -a 'name' \n😀"), "named");
    mkdirSync(join(made, "empty/deep"), { recursive: true });
    symlinkSync("../bytes", join(made, "empty/link"));
    expect(await cp("made", ":", cwd)).toMatchObject({ code: 0, stderr: "" });
    expect((await server.exec(id, "sha256sum < made/bytes; ls -A made/empty")).body.stdout).toMatch(
      /^[0-9a-f]{64} .*\ndeep\nlink\n$/,
    );
    expect(await cp(":made", "back", cwd)).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(join(cwd, "back/bytes")).equals(bytes)).toBe(true);
    expect(readdirSync(join(cwd, "back")).sort()).toEqual(readdirSync(made).sort());
    expect(lstatSync(join(cwd, "back/run")).mode & 0o777).toBe(0o755);
    expect(readlinkSync(join(cwd, "back/empty/link"))).toBe("../bytes");
    expect(readdirSync(join(cwd, "back/empty/deep"))).toEqual([]);
    // Nothing is left of what it was unpacked in.
    expect(readdirSync(cwd).sort()).toEqual(["back", "made"]);
  });

  it("[CL22] into a folder that is there, or to a name, as cp does", async () => {
    const cwd = folder("names");
    writeFileSync(join(cwd, "a"), "one", { mode: 0o640 });
    expect((await cp("a", ":b", cwd)).stdout).toBe("3 B to :b\n");
    expect((await cp("a", ":deep/er/", cwd)).stdout).toBe("3 B to :deep/er/a\n");
    expect((await cp("a", ":deep/er", cwd)).stdout).toBe("3 B to :deep/er/a\n");
    expect((await cp("a", ":/tmp", cwd)).stdout).toBe("3 B to :/tmp/a\n");
    expect((await server.exec(id, "cat b deep/er/a /tmp/a; stat -c %a b")).body.stdout).toBe(
      "oneoneone640\n",
    );
    expect((await cp(":deep", ".", cwd)).code).toBe(0);
    expect(readFileSync(join(cwd, "deep/er/a"), "utf8")).toBe("one");
    expect((await cp(`${id}:b`, "c", cwd)).stdout).toBe(`3 B to ${join(cwd, "c")}\n`);
    expect(lstatSync(join(cwd, "c")).mode & 0o777).toBe(0o640);
    const told = await person.json(["cp", "--id", id, ":b", "d"], { cwd });
    expect(told).toEqual({ sandbox: id, from: ":b", bytes: 3, to: join(cwd, "d") });
  });

  it("[CL22] what cannot be copied is refused, and leaves nothing half", async () => {
    const cwd = folder("refused");
    const refusals: [string, string, RegExp][] = [
      ["a", "b", /^error: one of the two must be in a sandbox, and one here\nhint: /],
      [":a", ":b", /^error: one of the two must be in a sandbox/],
      ["nosuch", ":", /^error: there is no nosuch here\n/],
      [":nosuch", ".", /^error: .*nosuch.*not there/],
      [":made", "none/at/all", /^error: there is no folder .*none\/at\n/],
      ["/dev/null", ":", /^error: \/dev\/null is no file and no folder\n/],
      [":/dev/null", "x", /^error: :?\/dev\/null is no file and no folder|^error: /],
    ];
    for (const [from, to, words] of refusals) {
      const ran = await cp(from, to, cwd);
      expect(ran).toMatchObject({ code: 1, stdout: "" });
      expect(ran.stderr).toMatch(words);
    }
    mkdirSync(join(cwd, "made/inside"), { recursive: true });
    expect((await cp(":made", ".", cwd)).stderr).toMatch(/made is there already\nhint: /);
    expect(readdirSync(cwd)).toEqual(["made"]);
  });

  it("[CL22] a hostile tree writes nothing outside of the folder that is made for it", async () => {
    const cwd = folder("hostile");
    const outside = folder("outside");
    await server.exec(id, `mkdir -p bad && cd bad && ln -s ${outside} link && echo x > ok`);
    expect(await cp(":bad", "got", cwd)).toMatchObject({ code: 0 });
    expect(readlinkSync(join(cwd, "got/link"))).toBe(outside);
    // The link is now here. A second copy must not go through it.
    await server.exec(id, "cd bad && rm link && mkdir link && echo gotcha > link/file");
    expect(await cp(":bad", "got", cwd)).toMatchObject({ code: 0 });
    expect(readFileSync(join(cwd, "got/bad/link/file"), "utf8")).toBe("gotcha\n");
    expect(readdirSync(outside)).toEqual([]);
  });

  it.each([
    ["a file", ":large/x", "content", "SIGINT", 130],
    ["a folder", ":large", "content/x", "SIGTERM", 143],
  ] as const)(
    "[CL22] %s whose copy is broken off leaves nothing of it here",
    async (_what, from, begun, signal, code) => {
      const cwd = folder(`broken-off-${signal}`);
      await server.exec(id, "mkdir -p large && head -c 300000000 /dev/zero > large/x");
      await using proxy = await CutProxy.to(server.url);
      const args = ["cp", "--json", "--id", id, from, "got"];
      const { child, ended } = person.start(args, { cwd, env: { BERTH_URL: proxy.url } });
      await until("it has begun", () =>
        readdirSync(cwd).some((at) => existsSync(join(cwd, at, begun))),
      );
      proxy.stall();
      child.kill(signal);
      const ran = await ended;
      expect(ran).toMatchObject({ code, stderr: "" });
      expect(JSON.parse(ran.stdout)).toMatchObject({ error: { code: "interrupted", signal } });
      expect(readdirSync(cwd)).toEqual([]);
    },
  );

  it("[CL22] tells places here from places there", () => {
    const other = "k3v9q2m7x1c5b8n4tq0w8e2r";
    expect(parseCopyPath("a/b")).toEqual({ isRemote: false, sandbox: undefined, path: "a/b" });
    expect(parseCopyPath("./a:b")).toEqual({ isRemote: false, sandbox: undefined, path: "./a:b" });
    expect(parseCopyPath(":")).toEqual({ isRemote: true, sandbox: undefined, path: "." });
    expect(parseCopyPath(":/a:b\nc")).toEqual({
      isRemote: true,
      sandbox: undefined,
      path: "/a:b\nc",
    });
    expect(parseCopyPath(`${other}:x`)).toEqual({ isRemote: true, sandbox: other, path: "x" });
    expect(parseCopyPath("C:\\x")).toMatchObject({ isRemote: false });
  });
});
