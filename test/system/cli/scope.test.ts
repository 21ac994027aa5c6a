import { cpSync, mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Sandbox } from "../../../src/protocol/sandbox.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { Person } from "./cli-user.ts";

describe("which sandbox a checkout means", () => {
  let server: SharedServer;
  let person: Person;
  beforeAll(async () => {
    server = await useSharedServer();
    person = new Person(server);
  });
  afterEach(async () => {
    for (const { id } of await live()) await server.call("DELETE", `/v1/sandboxes/${id}`);
  });
  afterAll(async () => {
    person[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const live = async () =>
    ((await server.call("GET", "/v1/sandboxes")).body as unknown as { sandboxes: Sandbox[] })
      .sandboxes;
  const start = async (cwd: string, args: string[] = [], who = person) =>
    (await who.json<{ sandbox: Sandbox }>(["start", ...args], { cwd })).sandbox;

  it("[CL10] two machines with one repository, branch and configuration meet in one sandbox", async () => {
    using other = new Person(server);
    const here = person.repo("app", "https://example.com/team/app.git");
    const there = other.repo("src/deep/copy", "git@Example.com:team/app");
    const one = await start(here);
    const two = await start(there, [], other);
    expect(two.id).toBe(one.id);
    expect(one.client).toMatchObject({ cwd: realpathSync(here), branch: "main" });
    // What the second machine never heard of it finds in the list, and remembers.
    const listed = await other.json<{ sandboxes: { id: string }[] }>(["list"], { cwd: there });
    expect(listed.sandboxes.map(({ id }) => id)).toEqual([one.id]);
  });

  it("[CL10] another repository, branch or configuration is another sandbox", async () => {
    const cwd = person.repo("parts", "https://example.com/team/parts.git");
    const far = person.repo("parts-2", "https://example.com/team/parts-2.git");
    person.write(cwd, "ci/sandbox.json", "{}");
    const ids = [
      await start(cwd),
      await start(far),
      await start(cwd, ["--config", "ci/sandbox.json"]),
    ];
    person.git(cwd, "switch", "-q", "-c", "feature/ü😀");
    ids.push(await start(cwd));
    expect(new Set(ids.map(({ id }) => id)).size).toBe(4);
    expect(ids[2]?.scope).toMatchObject({ config: "ci/sandbox.json" });
    expect(ids[3]?.scope).toMatchObject({ branch: "feature/ü😀" });
  });

  it("[CL10] a folder of it, a worktree of the branch's repository and no remote are the same repository", async () => {
    const cwd = person.repo("local");
    const { id, scope } = await start(cwd);
    expect(scope?.repo).toMatch(/^id\/[0-9a-f]{24}$/);
    mkdirSync(join(cwd, "deep/down"), { recursive: true });
    expect((await start(join(cwd, "deep/down"))).id).toBe(id);
    const tree = join(person.home, "tree");
    person.git(cwd, "worktree", "add", "-q", "-b", "side", tree);
    const side = await start(tree);
    expect(side.scope).toEqual({ ...scope, branch: "side" });
    expect(side.id).not.toBe(id);
    expect(person.git(tree, "status", "--porcelain")).toBe("");
    // A copy of the whole folder is a copy of the id, and so of the same.
    cpSync(cwd, join(person.home, "local-copy"), { recursive: true });
    expect((await start(join(person.home, "local-copy"))).id).toBe(id);
  });

  it("[CL11] a detached head takes over the sandbox of its nearest ancestor, and of no other commit", async () => {
    const cwd = person.repo("loose", "https://example.com/team/loose.git");
    const root = person.git(cwd, "rev-parse", "HEAD").trim();
    const named = await start(cwd);
    person.git(cwd, "checkout", "-q", "--detach");
    const first = await start(cwd);
    expect(first.scope?.branch).toBe(`detached@${root}`);
    expect(first.id).not.toBe(named.id);
    const second = person.commit(cwd, "second");
    expect((await start(cwd)).id).toBe(first.id);
    // A nearer ancestor with a sandbox of its own wins over a farther one.
    await person.json(["stop"], { cwd });
    const near = await start(cwd);
    expect(near.scope?.branch).toBe(`detached@${second}`);
    person.git(cwd, "checkout", "-q", "--detach", root);
    const far = await start(cwd);
    expect(far.scope?.branch).toBe(`detached@${root}`);
    person.git(cwd, "checkout", "-q", "--detach", second);
    person.commit(cwd, "third");
    expect((await start(cwd)).id).toBe(near.id);
    // Of a commit that has nothing to do with it.
    person.git(cwd, "checkout", "-q", "--orphan", "apart");
    person.commit(cwd, "apart");
    person.git(cwd, "checkout", "-q", "--detach");
    const apart = await start(cwd);
    expect([named.id, near.id, far.id]).not.toContain(apart.id);
  });

  it("[CL11] another machine takes the same ancestor's, and no second one is made", async () => {
    using other = new Person(server);
    const cwd = person.repo("pair", "https://example.com/team/pair.git");
    person.git(cwd, "checkout", "-q", "--detach");
    const first = await start(cwd);
    const there = join(other.home, "pair");
    cpSync(cwd, there, { recursive: true });
    other.commit(there, "on top");
    const all = await Promise.all([start(there, [], other), start(there, [], other), start(cwd)]);
    expect(new Set(all.map(({ id }) => id))).toEqual(new Set([first.id]));
    expect(await live()).toHaveLength(1);
  });

  it("[CL12] a branch with one other configuration means that; with several it asks which, and changes nothing", async () => {
    const cwd = person.repo("several", "https://example.com/team/several.git");
    person.write(cwd, "a.json", "{}");
    person.write(cwd, "b.json", '{"env":{"B":"1"}}');
    const one = await start(cwd, ["--config", "a.json"]);
    const only = await person.berth(["start", "--json"], { cwd });
    expect(only.stderr).toBe("using the sandbox of a.json\n");
    expect(JSON.parse(only.stdout)).toMatchObject({ sandbox: { id: one.id } });
    await start(cwd, ["--config", "b.json"]);
    const state = await live();
    const asked = await person.berth(["start"], { cwd });
    expect(asked).toMatchObject({
      ...{ code: 1, stdout: "" },
      stderr: expect.stringMatching(
        /^error: main has sandboxes of 2 configurations\nhint: Say which: --config [ab]\.json, --config [ab]\.json\.\n$/,
      ),
    });
    const ids = (rows: Sandbox[]) => rows.map(({ id }) => id).sort();
    expect(ids(await live())).toEqual(ids(state));
    expect((await start(cwd, ["--config", "a.json"])).id).toBe(one.id);
  });

  it("[CL12] outside of a checkout, or in a bare one, it says so", async () => {
    const bare = join(person.home, "bare.git");
    person.git(person.home, "init", "-q", "--bare", bare);
    for (const cwd of [person.home, bare]) {
      const ran = await person.berth(["start"], { cwd });
      expect(ran).toMatchObject({ code: 1, stdout: "" });
      expect(ran.stderr).toContain(`${realpathSync(cwd)} is not inside a git checkout\nhint: `);
    }
    expect(await live()).toEqual([]);
  });
});
