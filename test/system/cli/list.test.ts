import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, it } from "vitest";
import { useSharedServer } from "../shared-server.ts";
import { CliUser } from "./cli-user.ts";
import { type Fault, FaultProxy } from "./fault-proxy.ts";

type Listed = { sandboxes: { id: string; state: string; here: boolean; current: boolean }[] };

const server = await useSharedServer();
const proxy = await FaultProxy.to(server.url);
const user = new CliUser({ url: proxy.url, key: server.key });
afterEach(async () => {
  proxy.fail(undefined);
  const { sandboxes } = (await server.call("GET", "/v1/sandboxes")).body as unknown as Listed;
  for (const { id } of sandboxes) await server.call("DELETE", `/v1/sandboxes/${id}`);
});
afterAll(async () => {
  user[Symbol.dispose]();
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const list = async (cwd: string, args: string[] = []) =>
  (await user.json<Listed>(["list", ...args], { cwd })).sandboxes;
const readState = (cwd: string) => readFileSync(join(cwd, ".berth/state.json"), "utf8");

it("[CL13] prints a table of the repository's sandboxes, newest first, with its own one marked", async () => {
  const cwd = user.repo("table", "https://example.com/team/table.git");
  user.write(cwd, ".berth/sandbox.json", "{}");
  const first = await user.startSandbox(cwd);
  user.git(cwd, "switch", "-q", "-c", "feature/a-longer-name");
  const second = await user.startSandbox(cwd);
  const far = user.repo("far", "https://example.com/team/far.git");
  const other = await user.startSandbox(far);
  const maker = "user@example.com";
  const table = [
    ["SANDBOX", "STATE", "BRANCH", "CONFIG", "MADE BY", "AGE", "FOLDER"],
    [
      `${second.id} *`,
      "running",
      "feature/a-longer-name",
      ".berth/sandbox.json",
      maker,
      "NOW",
      cwd,
    ],
    [first.id, "running", "main", ".berth/sandbox.json", maker, "NOW", cwd],
    [""],
  ];
  const output = await user.output(["list"], { cwd });
  const cells = output.split("\n").map((line) => line.split(/ {2,}/));
  expect(cells.map((row) => row.map((cell) => cell.replace(/^\d+[smh]$/, "NOW")))).toEqual(table);
  const all = await user.berth(["list", "--all"], { cwd });
  expect(all.stdout.split("\n").map((line) => line.split(/\s+/).at(-1))).toEqual([
    ...["REPO", "example.com/team/far", "example.com/team/table", "example.com/team/table", ""],
  ]);
  expect(await list(user.home)).toHaveLength(3);
  expect((await list(cwd, ["--branch", "main"])).map(({ id }) => id)).toEqual([first.id]);
  await server.call("PATCH", `/v1/sandboxes/${second.id}/metadata`, { owner: "ci" });
  expect((await list(cwd, ["--metadata", "owner=ci"])).map(({ id }) => id)).toEqual([second.id]);
  await user.json(["pause"], { cwd });
  expect((await list(cwd, ["--all", "--state", "running"])).map(({ id }) => id)).toEqual([
    ...[other.id, first.id],
  ]);
});

it("[ME3] top shows what the running sandboxes use, once into a pipe", async () => {
  const id = await server.create();
  await server.call("POST", "/v1/sandboxes", { start: false });
  const { sandboxes } = await user.json<{ sandboxes: { id: string; metrics: object[] }[] }>([
    "top",
  ]);
  expect(sandboxes.map((used) => [used.id, used.metrics.length])).toEqual([[id, 1]]);
  expect(await user.output(["top"])).toMatch(new RegExp(`^SANDBOX .*\\n${id} .*\\d %`));
});

it("[CL13] says that there are none, and prints an empty document with --json", async () => {
  const cwd = user.repo("empty", "https://example.com/team/empty.git");
  const empty = { code: 0, stdout: "", stderr: "No sandboxes.\n" };
  expect(await user.berth(["list"], { cwd })).toMatchObject(empty);
  expect(await list(cwd)).toEqual([]);
});

it("[CL14] sends one request, however many sandboxes there are", async () => {
  const cwd = user.repo("once", "https://example.com/team/once.git");
  for (const branch of ["main", "b1", "b2", "b3", "b4"]) {
    if (branch !== "main") user.git(cwd, "switch", "-q", "-c", branch);
    await user.json(["start"], { cwd });
  }
  proxy.fail(undefined);
  expect(await list(cwd)).toHaveLength(5);
  expect(proxy.calls).toEqual([expect.stringMatching(/^GET \/v1\/sandboxes\?/)]);
});

it.each<[Fault]>([["500"], ["reset"], ["nonsense"]])(
  "[CL15] a recorded sandbox that is not listed is looked up, and stays as `unknown` after a failure (%s)",
  async (fault) => {
    const cwd = user.repo(`fault-${fault}`, `https://example.com/team/fault-${fault}.git`);
    const first = await user.startSandbox(cwd);
    // Recorded for another repository, so the list does not contain it.
    const moved = readState(cwd);
    user.git(cwd, "remote", "set-url", "origin", `https://example.com/team/new-${fault}.git`);
    writeFileSync(
      join(cwd, ".berth/state.json"),
      moved.replaceAll(`team/fault-${fault}`, `team/new-${fault}`),
    );
    const before = readState(cwd);
    proxy.fail(new RegExp(`GET /v1/sandboxes/${first.id}`), fault);
    expect(await list(cwd)).toMatchObject([{ id: first.id, state: "unknown" }]);
    expect(proxy.calls.length).toBeGreaterThan(1);
    expect(readState(cwd)).toBe(before);
    proxy.fail(undefined);
    expect(await list(cwd)).toMatchObject([{ id: first.id, state: "running" }]);
    expect(readState(cwd)).toBe(before);
    // Only a definite end removes the record.
    await server.call("DELETE", `/v1/sandboxes/${first.id}`);
    expect(await list(cwd)).toEqual([]);
    expect(readState(cwd)).not.toContain(first.id);
  },
);

it("[CL15] a failed list changes no record", async () => {
  const cwd = user.repo("fails", "https://example.com/team/fails.git");
  await user.startSandbox(cwd);
  const before = readState(cwd);
  proxy.fail(/^GET \/v1\/sandboxes\?/);
  const result = await user.failure(["list"], { cwd });
  expect(result).toMatch(/^error: .*500.*\nhint: /);
  expect(readState(cwd)).toBe(before);
});

it("[CL15] start creates no sandbox if it cannot find out whether there is one", async () => {
  const cwd = user.repo("doubt", "https://example.com/team/doubt.git");
  user.git(cwd, "checkout", "-q", "--detach");
  proxy.fail(/^GET \/v1\/sandboxes\?/);
  expect(await user.berth(["start"], { cwd })).toMatchObject({ code: 1, stdout: "" });
  expect(proxy.calls.length).toBeGreaterThan(0);
  expect(proxy.calls.filter((call) => call.startsWith("POST"))).toEqual([]);
  proxy.fail(undefined);
  expect(await list(cwd)).toEqual([]);
});

it("[CL16] nothing is written through a link `.berth`", async () => {
  const cwd = user.repo("hostile", "https://example.com/team/hostile.git");
  const elsewhere = user.repo("elsewhere");
  symlinkSync(elsewhere, join(cwd, ".berth"));
  const before = readdirSync(elsewhere).sort();
  const result = await user.berth(["start"], { cwd });
  expect(result).toMatchObject({
    ...{ code: 0, stdout: expect.stringContaining("(created)") },
    stderr: "warning: `.berth/state.json` was not written: `.berth` is a link.\n",
  });
  expect(readdirSync(elsewhere).sort()).toEqual(before);
});

it("[CL16] the local state is ignored by git, and rebuilt if it cannot be read", async () => {
  const cwd = user.repo("memory", "https://example.com/team/memory.git");
  const first = await user.startSandbox(cwd);
  expect(existsSync(join(cwd, ".berth/state.json"))).toBe(true);
  expect(user.git(cwd, "status", "--porcelain", "--untracked-files=all")).toBe("");
  for (const broken of ["", "{", '{"version":2}', "[]", '{"version":1,"sandboxes":[{}]}']) {
    writeFileSync(join(cwd, ".berth/state.json"), broken);
    const result = await user.berth(["start", "--json"], { cwd });
    expect(result.stderr).toBe(
      "warning: `.berth/state.json` cannot be read and is rebuilt from what the server says.\n",
    );
    expect(JSON.parse(result.stdout)).toMatchObject({ made: false, sandbox: { id: first.id } });
    expect(JSON.parse(readState(cwd))).toMatchObject({ version: 1, sandboxes: [{ id: first.id }] });
  }
  expect(await user.berth(["start"], { cwd })).toMatchObject({ code: 0, stderr: "" });
  expect(user.git(cwd, "status", "--porcelain", "--untracked-files=all")).toBe("");
});
