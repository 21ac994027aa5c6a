import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Sandbox } from "../../../src/protocol/sandbox.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { Person } from "./cli-user.ts";
import { type Fault, FaultProxy } from "./fault-proxy.ts";

type Listed = { sandboxes: { id: string; state: string; here: boolean; current: boolean }[] };

describe("the list", () => {
  let server: SharedServer;
  let proxy: FaultProxy;
  let person: Person;
  beforeAll(async () => {
    server = await useSharedServer();
    proxy = await FaultProxy.to(server.url);
    person = new Person({ url: proxy.url, key: server.key });
  });
  afterEach(async () => {
    proxy.fail(undefined);
    const { sandboxes } = (await server.call("GET", "/v1/sandboxes")).body as unknown as Listed;
    for (const { id } of sandboxes) await server.call("DELETE", `/v1/sandboxes/${id}`);
  });
  afterAll(async () => {
    person[Symbol.dispose]();
    await proxy[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  const start = async (cwd: string, args: string[] = []) =>
    (await person.json<{ sandbox: Sandbox }>(["start", "--wait", ...args], { cwd })).sandbox;
  const list = async (cwd: string, args: string[] = []) =>
    (await person.json<Listed>(["list", ...args], { cwd })).sandboxes;
  const memory = (cwd: string) => readFileSync(join(cwd, ".berth/state.json"), "utf8");

  it("[CL13] is a table of the repository's sandboxes, newest first, its own one marked", async () => {
    const cwd = person.repo("table", "https://example.com/team/table.git");
    person.write(cwd, ".berth/sandbox.json", "{}");
    const one = await start(cwd);
    person.git(cwd, "switch", "-q", "-c", "feature/a-longer-name");
    const two = await start(cwd);
    const far = person.repo("far", "https://example.com/team/far.git");
    const three = await start(far);
    const ages = (text: string) => text.replace(/\d+[smh]$/gm, "NOW");
    const own = await person.berth(["list"], { cwd });
    expect({ ...own, stdout: ages(own.stdout) }).toEqual({
      ...{ code: 0, signal: null, stderr: "" },
      stdout: [
        "SANDBOX                     STATE    BRANCH                 CONFIG               AGE",
        `${two.id} *  running  feature/a-longer-name  .berth/sandbox.json  NOW`,
        `${one.id}    running  main                   .berth/sandbox.json  NOW`,
        "",
      ].join("\n"),
    });
    const all = await person.berth(["list", "--all"], { cwd });
    expect(all.stdout.split("\n").map((line) => line.split(/\s+/).at(-1))).toEqual([
      ...["REPO", "example.com/team/far", "example.com/team/table", "example.com/team/table", ""],
    ]);
    expect(await list(person.home)).toHaveLength(3);
    expect((await list(cwd, ["--branch", "main"])).map(({ id }) => id)).toEqual([one.id]);
    await server.call("PATCH", `/v1/sandboxes/${two.id}/metadata`, { owner: "ci" });
    expect((await list(cwd, ["--metadata", "owner=ci"])).map(({ id }) => id)).toEqual([two.id]);
    await person.json(["pause"], { cwd });
    expect((await list(cwd, ["--all", "--state", "running"])).map(({ id }) => id)).toEqual([
      ...[three.id, one.id],
    ]);
  });

  it("[CL13] is empty in words, and as an empty document", async () => {
    const cwd = person.repo("empty", "https://example.com/team/empty.git");
    expect(await person.berth(["list"], { cwd })).toEqual({
      ...{ code: 0, signal: null, stdout: "" },
      stderr: "no sandboxes\n",
    });
    expect(await list(cwd)).toEqual([]);
  });

  it("[CL14] asks the server once, however many there are", async () => {
    const cwd = person.repo("once", "https://example.com/team/once.git");
    for (const branch of ["main", "b1", "b2", "b3", "b4"]) {
      if (branch !== "main") person.git(cwd, "switch", "-q", "-c", branch);
      await person.json(["start"], { cwd });
    }
    proxy.fail(undefined);
    expect(await list(cwd)).toHaveLength(5);
    expect(proxy.calls).toEqual([expect.stringMatching(/^GET \/v1\/sandboxes\?/)]);
  });

  it.each<[Fault]>([["500"], ["reset"], ["nonsense"]])(
    "[CL15] what the server does not name is asked, and kept as unknown while it cannot be told (%s)",
    async (fault) => {
      const cwd = person.repo(`fault-${fault}`, `https://example.com/team/fault-${fault}.git`);
      const one = await start(cwd);
      // Remembered, and no more of this repository: the list does not name it.
      const moved = memory(cwd);
      person.git(cwd, "remote", "set-url", "origin", `https://example.com/team/new-${fault}.git`);
      writeFileSync(
        join(cwd, ".berth/state.json"),
        moved.replaceAll(`team/fault-${fault}`, `team/new-${fault}`),
      );
      const before = memory(cwd);
      proxy.fail(new RegExp(`GET /v1/sandboxes/${one.id}`), fault);
      expect(await list(cwd)).toMatchObject([{ id: one.id, state: "unknown" }]);
      expect(proxy.calls.length).toBeGreaterThan(1);
      expect(memory(cwd)).toBe(before);
      proxy.fail(undefined);
      expect(await list(cwd)).toMatchObject([{ id: one.id, state: "running" }]);
      expect(memory(cwd)).toBe(before);
      // Only a definite end makes it forgotten.
      await server.call("DELETE", `/v1/sandboxes/${one.id}`);
      expect(await list(cwd)).toEqual([]);
      expect(memory(cwd)).not.toContain(one.id);
    },
  );

  it("[CL15] a list that fails changes nothing that is remembered", async () => {
    const cwd = person.repo("fails", "https://example.com/team/fails.git");
    await start(cwd);
    const before = memory(cwd);
    proxy.fail(/^GET \/v1\/sandboxes\?/);
    const ran = await person.berth(["list"], { cwd });
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toMatch(/^error: .*500.*\nhint: /);
    expect(memory(cwd)).toBe(before);
  });

  it("[CL15] where it cannot be told whether there is one, none is made", async () => {
    const cwd = person.repo("doubt", "https://example.com/team/doubt.git");
    person.git(cwd, "checkout", "-q", "--detach");
    proxy.fail(/^GET \/v1\/sandboxes\?/);
    expect(await person.berth(["start"], { cwd })).toMatchObject({ code: 1, stdout: "" });
    expect(proxy.calls.length).toBeGreaterThan(0);
    expect(proxy.calls.filter((call) => call.startsWith("POST"))).toEqual([]);
    proxy.fail(undefined);
    expect(await list(cwd)).toEqual([]);
  });

  it("[CL16] where a checkout leads its folder elsewhere nothing is written there", async () => {
    const cwd = person.repo("hostile", "https://example.com/team/hostile.git");
    const elsewhere = person.repo("elsewhere");
    symlinkSync(elsewhere, join(cwd, ".berth"));
    const before = readdirSync(elsewhere).sort();
    const ran = await person.berth(["start"], { cwd });
    expect(ran).toMatchObject({
      ...{ code: 0, stdout: expect.stringContaining("(made)") },
      stderr: "warning: .berth/state.json was not written: .berth is a link\n",
    });
    expect(readdirSync(elsewhere).sort()).toEqual(before);
  });

  it("[CL16] what is remembered is unknown to git, and is made anew where it cannot be read", async () => {
    const cwd = person.repo("memory", "https://example.com/team/memory.git");
    const one = await start(cwd);
    expect(existsSync(join(cwd, ".berth/state.json"))).toBe(true);
    expect(person.git(cwd, "status", "--porcelain", "--untracked-files=all")).toBe("");
    for (const broken of ["", "{", '{"version":2}', "[]", '{"version":1,"sandboxes":[{}]}']) {
      writeFileSync(join(cwd, ".berth/state.json"), broken);
      const ran = await person.berth(["start", "--json"], { cwd });
      expect(ran.stderr).toBe(
        "warning: .berth/state.json cannot be read; it is made anew from what the server says\n",
      );
      expect(JSON.parse(ran.stdout)).toMatchObject({ made: false, sandbox: { id: one.id } });
      expect(JSON.parse(memory(cwd))).toMatchObject({ version: 1, sandboxes: [{ id: one.id }] });
    }
    expect(await person.berth(["start"], { cwd })).toMatchObject({ code: 0, stderr: "" });
    expect(person.git(cwd, "status", "--porcelain", "--untracked-files=all")).toBe("");
  });
});
