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
import { expect, it } from "vitest";
import { parseCopyPath } from "../../../src/cli/commands/cp.ts";
import { until } from "../../until.ts";
import { CutProxy } from "../client/cut-proxy.ts";
import { useCliUser } from "./cli-user.ts";

const { server, user } = await useCliUser();
const id = await server.create();

const cp = async (from: string, to: string, cwd: string) =>
  await user.berth(["cp", "--id", id, from, to], { cwd });
const refusal = async (from: string, to: string, cwd: string) =>
  await user.failure(["cp", "--id", id, from, to], { cwd });
const folder = (name: string) => {
  const path = join(user.home, name);
  mkdirSync(path, { recursive: true });
  return path;
};

it("[CL2] explains a refusal of this machine or of the sandbox, with a next step", async () => {
  const cwd = folder("refused");
  expect((await server.exec(id, "echo there > there")).body.exitCode).toBe(0);
  const here = await refusal(":there", "/proc/here", cwd);
  expect(here).toMatch(/^error: E[A-Z]+: .*\nhint: Check that this user has access .*\n$/);
  const there = await refusal(":nowhere", ".", cwd);
  expect(there).toMatch(/^error: \/workspace\/nowhere .*\nhint: Run `berth exec -- ls` .*\n$/);
  const local = await cp("nowhere", ":", cwd);
  expect(local.stderr).toMatch(
    /^error: nowhere does not exist on this machine\.\nhint: .*:nowhere.*\n$/,
  );
});

it("[CL22] copies a folder there and back unchanged: modes, links, empty folders, any name", async () => {
  const cwd = folder("there-and-back");
  const folderPath = folder("there-and-back/made");
  const bytes = randomBytes(300_000);
  writeFileSync(join(folderPath, "bytes"), bytes);
  writeFileSync(join(folderPath, "run"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(folderPath, " -a 'name' \n😀"), "named");
  mkdirSync(join(folderPath, "empty/deep"), { recursive: true });
  symlinkSync("../bytes", join(folderPath, "empty/link"));
  expect(await cp("made", ":", cwd)).toMatchObject({ code: 0, stderr: "" });
  expect((await server.exec(id, "sha256sum < made/bytes; ls -A made/empty")).body.stdout).toMatch(
    /^[0-9a-f]{64} .*\ndeep\nlink\n$/,
  );
  expect(await cp(":made", "back", cwd)).toMatchObject({ code: 0, stderr: "" });
  expect(readFileSync(join(cwd, "back/bytes")).equals(bytes)).toBe(true);
  expect(readdirSync(join(cwd, "back")).sort()).toEqual(readdirSync(folderPath).sort());
  expect(lstatSync(join(cwd, "back/run")).mode & 0o777).toBe(0o755);
  expect(readlinkSync(join(cwd, "back/empty/link"))).toBe("../bytes");
  expect(readdirSync(join(cwd, "back/empty/deep"))).toEqual([]);
  // The temporary folder is removed.
  expect(readdirSync(cwd).sort()).toEqual(["back", "made"]);
});

it("[CL22] copies into an existing folder or to a new name, as cp does", async () => {
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
  const document = await user.json(["cp", "--id", id, ":b", "d"], { cwd });
  expect(document).toEqual({ sandbox: id, from: ":b", bytes: 3, to: join(cwd, "d") });
});

it("[CL22] refuses what cannot be copied and leaves nothing partial", async () => {
  const cwd = folder("refused");
  const refusals: [string, string, RegExp][] = [
    ["a", "b", /^error: One path must be in a sandbox and the other on this machine\.\nhint: /],
    [":a", ":b", /^error: One path must be in a sandbox/],
    ["nosuch", ":", /^error: nosuch does not exist on this machine\.\n/],
    [":nosuch", ".", /^error: .*nosuch.*does not exist/],
    [":made", "none/at/all", /^error: .*none\/at does not exist\.\n/],
    ["/dev/null", ":", /^error: \/dev\/null is neither a file nor a folder\.\n/],
    [":/dev/null", "x", /^error: :?\/dev\/null is neither a file nor a folder|^error: /],
  ];
  for (const [from, to, message] of refusals) {
    const result = await refusal(from, to, cwd);
    expect(result).toMatch(message);
  }
  mkdirSync(join(cwd, "made/inside"), { recursive: true });
  expect((await cp(":made", ".", cwd)).stderr).toMatch(/made already exists\.\nhint: /);
  expect(readdirSync(cwd)).toEqual(["made"]);
});

it("[CL22] a hostile tree writes nothing outside of its new folder", async () => {
  const cwd = folder("hostile");
  const outside = folder("outside");
  await server.exec(id, `mkdir -p bad && cd bad && ln -s ${outside} link && echo x > ok`);
  expect(await cp(":bad", "got", cwd)).toMatchObject({ code: 0 });
  expect(readlinkSync(join(cwd, "got/link"))).toBe(outside);
  // The link exists here now. A second copy must not follow it.
  await server.exec(id, "cd bad && rm link && mkdir link && echo gotcha > link/file");
  expect(await cp(":bad", "got", cwd)).toMatchObject({ code: 0 });
  expect(readFileSync(join(cwd, "got/bad/link/file"), "utf8")).toBe("gotcha\n");
  expect(readdirSync(outside)).toEqual([]);
});

it.each([
  ["a file", ":large/x", "content", "SIGINT", 130],
  ["a folder", ":large", "content/x", "SIGTERM", 143],
] as const)(
  "[CL22] an interrupted copy of %s leaves nothing here",
  async (_what, from, partial, signal, code) => {
    const cwd = folder(`broken-off-${signal}`);
    await server.exec(id, "mkdir -p large && head -c 300000000 /dev/zero > large/x");
    await using proxy = await CutProxy.to(server.url);
    const args = ["cp", "--json", "--id", id, from, "got"];
    const { child, ended } = user.start(args, { cwd, env: { BERTH_URL: proxy.url } });
    await until("the transfer has started", () =>
      readdirSync(cwd).some((name) => existsSync(join(cwd, name, partial))),
    );
    proxy.stall();
    child.kill(signal);
    const result = await ended;
    expect(result).toMatchObject({ code, stderr: "" });
    expect(JSON.parse(result.stdout)).toMatchObject({ error: { code: "interrupted", signal } });
    expect(readdirSync(cwd)).toEqual([]);
  },
);

it("[CL22] distinguishes local paths from paths in a sandbox", () => {
  const other = "k3v9q2m7x1c5b8n4tq0w8e2r";
  const local = { isRemote: false, sandbox: undefined };
  const remote = { isRemote: true, sandbox: undefined };
  expect(parseCopyPath("a/b")).toEqual({ ...local, path: "a/b" });
  expect(parseCopyPath("./a:b")).toEqual({ ...local, path: "./a:b" });
  expect(parseCopyPath(":")).toEqual({ ...remote, path: "." });
  expect(parseCopyPath(":/a:b\nc")).toEqual({ ...remote, path: "/a:b\nc" });
  expect(parseCopyPath(`${other}:x`)).toEqual({ isRemote: true, sandbox: other, path: "x" });
  expect(parseCopyPath("C:\\x")).toMatchObject({ isRemote: false });
});
