import { cpSync, mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { Sandbox } from "../../../src/protocol/sandbox.ts";
import { CliUser, useCliUser } from "./cli-user.ts";

const { server, user, listSandboxes } = await useCliUser();

afterEach(async () => {
  for (const { id } of await listSandboxes()) await server.call("DELETE", `/v1/sandboxes/${id}`);
});

const start = async (cwd: string, args: string[] = [], starter = user) =>
  (await starter.json<{ sandbox: Sandbox }>(["start", ...args], { cwd })).sandbox;

it("[CL10] two machines with the same repository, branch and configuration share one sandbox", async () => {
  using other = new CliUser(server);
  const here = user.repo("app", "https://example.com/team/app.git");
  const there = other.repo("src/deep/copy", "git@Example.com:team/app");
  const first = await start(here);
  const second = await start(there, [], other);
  expect(second.id).toBe(first.id);
  expect(first.client).toMatchObject({ cwd: realpathSync(here), branch: "main" });
  // The second machine finds it in the list and records it.
  const listed = await other.json<{ sandboxes: { id: string }[] }>(["list"], { cwd: there });
  expect(listed.sandboxes.map(({ id }) => id)).toEqual([first.id]);
});

it("[CL10] another repository, branch or configuration is another sandbox", async () => {
  const cwd = user.repo("parts", "https://example.com/team/parts.git");
  const far = user.repo("parts-2", "https://example.com/team/parts-2.git");
  user.write(cwd, "ci/sandbox.json", "{}");
  const ids = [await start(cwd), await start(far)];
  ids.push(await start(cwd, ["--config", "ci/sandbox.json"]));
  user.git(cwd, "switch", "-q", "-c", "feature/ü😀");
  ids.push(await start(cwd));
  expect(new Set(ids.map(({ id }) => id)).size).toBe(4);
  expect(ids[2]?.scope).toMatchObject({ config: "ci/sandbox.json" });
  expect(ids[3]?.scope).toMatchObject({ branch: "feature/ü😀" });
});

it("[CL10] a subfolder, a worktree and a copy belong to the same repository, also without a remote", async () => {
  const cwd = user.repo("local");
  const { id, scope } = await start(cwd);
  expect(scope?.repo).toMatch(/^id\/[0-9a-f]{24}$/);
  mkdirSync(join(cwd, "deep/down"), { recursive: true });
  expect((await start(join(cwd, "deep/down"))).id).toBe(id);
  const tree = join(user.home, "tree");
  user.git(cwd, "worktree", "add", "-q", "-b", "side", tree);
  const side = await start(tree);
  expect(side.scope).toEqual({ ...scope, branch: "side" });
  expect(side.id).not.toBe(id);
  expect(user.git(tree, "status", "--porcelain")).toBe("");
  // A copy of the folder has a copy of the id, and so the same sandbox.
  cpSync(cwd, join(user.home, "local-copy"), { recursive: true });
  expect((await start(join(user.home, "local-copy"))).id).toBe(id);
});

it("[CL11] a detached HEAD uses the sandbox of its nearest ancestor and of no other commit", async () => {
  const cwd = user.repo("loose", "https://example.com/team/loose.git");
  const root = user.git(cwd, "rev-parse", "HEAD").trim();
  const onBranch = await start(cwd);
  user.git(cwd, "checkout", "-q", "--detach");
  const first = await start(cwd);
  expect(first.scope?.branch).toBe(`detached@${root}`);
  expect(first.id).not.toBe(onBranch.id);
  const second = user.commit(cwd, "second");
  expect((await start(cwd)).id).toBe(first.id);
  // The nearest ancestor with a sandbox wins.
  await user.json(["rm", "--yes"], { cwd });
  const near = await start(cwd);
  expect(near.scope?.branch).toBe(`detached@${second}`);
  user.git(cwd, "checkout", "-q", "--detach", root);
  const far = await start(cwd);
  expect(far.scope?.branch).toBe(`detached@${root}`);
  user.git(cwd, "checkout", "-q", "--detach", second);
  user.commit(cwd, "third");
  expect((await start(cwd)).id).toBe(near.id);
  // An unrelated commit.
  user.git(cwd, "checkout", "-q", "--orphan", "apart");
  user.commit(cwd, "apart");
  user.git(cwd, "checkout", "-q", "--detach");
  const apart = await start(cwd);
  expect([onBranch.id, near.id, far.id]).not.toContain(apart.id);
});

it("[CL11] another machine uses the same ancestor's sandbox and creates no second one", async () => {
  using other = new CliUser(server);
  const cwd = user.repo("pair", "https://example.com/team/pair.git");
  user.git(cwd, "checkout", "-q", "--detach");
  const first = await start(cwd);
  const there = join(other.home, "pair");
  cpSync(cwd, there, { recursive: true });
  other.commit(there, "on top");
  const all = await Promise.all([start(there, [], other), start(there, [], other), start(cwd)]);
  expect(new Set(all.map(({ id }) => id))).toEqual(new Set([first.id]));
  expect(await listSandboxes()).toHaveLength(1);
});

it("[CL12] a branch with one other configuration uses that; with several it fails and changes nothing", async () => {
  const cwd = user.repo("several", "https://example.com/team/several.git");
  user.write(cwd, "a.json", "{}");
  user.write(cwd, "b.json", '{"env":{"B":"1"}}');
  const first = await start(cwd, ["--config", "a.json"]);
  const only = await user.berth(["start", "--json"], { cwd });
  expect(only.stderr).toBe("Using the sandbox of a.json.\n");
  expect(JSON.parse(only.stdout)).toMatchObject({ sandbox: { id: first.id } });
  await start(cwd, ["--config", "b.json"]);
  const state = await listSandboxes();
  const ambiguous = await user.failure(["start"], { cwd });
  expect(ambiguous).toMatch(
    /^error: main has sandboxes of 2 configurations\.\nhint: Choose one: --config [ab]\.json, --config [ab]\.json\.\n$/,
  );
  const ids = (rows: Sandbox[]) => rows.map(({ id }) => id).sort();
  expect(ids(await listSandboxes())).toEqual(ids(state));
  expect((await start(cwd, ["--config", "a.json"])).id).toBe(first.id);
});

it("[CL12] fails outside of a checkout and in a bare repository", async () => {
  const bare = join(user.home, "bare.git");
  user.git(user.home, "init", "-q", "--bare", bare);
  for (const cwd of [user.home, bare]) {
    const ran = await user.failure(["start"], { cwd });
    expect(ran).toContain(`${realpathSync(cwd)} is not inside a git checkout.\nhint: `);
  }
  expect(await listSandboxes()).toEqual([]);
});

it("[CL33] people have a sandbox each; a shared one is by choice, or in CI", async () => {
  using bob = new CliUser(server);
  bob.git(bob.home, "config", "--global", "user.email", "Bob@example.com");
  const remote = "https://example.com/team/people.git";
  const [here, there] = [user.repo("people", remote), bob.repo("people", remote)];
  const mine = await start(here);
  const other = await start(there, [], bob);
  expect([mine.scope?.owner, other.scope?.owner]).toEqual(["user@example.com", "bob@example.com"]);
  expect(other.id).not.toBe(mine.id);
  const inCi = await bob.berth(["start", "--json"], { cwd: there, env: { CI: "1" } });
  const shared = JSON.parse(inCi.stdout).sandbox;
  expect(shared.scope.owner).toBeUndefined();
  user.write(here, ".berth/sandbox.json", '{ "scope": "shared" }');
  expect((await start(here)).id).toBe(shared.id);
  bob.write(there, ".berth/sandbox.json", '{ "scope": "shared" }');
  bob.git(there, "switch", "-q", "-c", "ci");
  const said = await bob.berth(["start"], { cwd: there, env: { CI: "1" } });
  expect(said.stderr).toBe("");
  bob.write(there, ".berth/sandbox.json", "{}");
  bob.git(there, "switch", "-q", "-c", "ci2");
  const saying = await bob.berth(["start"], { cwd: there, env: { CI: "1" } });
  expect(saying.stderr).toMatch(/^In CI everybody on this branch shares the sandbox\. /);
});

it("[CL8] rm refuses a sandbox with unsynced work, or of somebody else, without --yes; stop keeps its files", async () => {
  using bob = new CliUser(server);
  bob.git(bob.home, "config", "--global", "user.email", "bob@example.com");
  const remote = "https://example.com/team/kept-work.git";
  const [cwd, there] = [user.repo("kept-work", remote), bob.repo("kept-work", remote)];
  const { id } = await start(cwd);
  expect(await user.berth(["exec", "--", "true"], { cwd })).toMatchObject({ code: 0 });
  await server.exec(
    id,
    "echo x > new; git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x",
  );
  const question = `error: Sandbox ${id} has 1 file and 1 commit that no checkout has.\n`;
  expect(await user.failure(["rm"], { cwd })).toBe(
    `${question}hint: \`berth pull\` fetches its files. \`--yes\` removes it anyway.\n`,
  );
  expect(await user.failure(["reset"], { cwd })).toContain(question);
  expect(await user.output(["stop"], { cwd })).toBe(`Sandbox ${id} is paused; its files stay.\n`);
  expect((await user.berth(["pull"], { cwd })).stderr).toContain("Changed here: new\n");
  expect(await bob.failure(["rm", id], { cwd: there })).toContain(
    `error: Sandbox ${id} was made by user@example.com`,
  );
  // Only the own sandboxes of the repository are meant.
  expect((await bob.berth(["rm", "--all", "--yes"], { cwd: there })).stdout).toBe(
    "There is no sandbox to remove.\n",
  );
  expect(await user.output(["rm", "--yes"], { cwd })).toBe(`Sandbox ${id} is removed.\n`);
});
