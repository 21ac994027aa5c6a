import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Sandbox } from "../../../src/protocol/sandbox.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { Person } from "./cli-user.ts";

const idPattern = "[a-z][a-z0-9]{23}";
type Listed = { sandboxes: { id: string; state: string; here: boolean }[] };

describe("the life of a checkout's sandbox", () => {
  let server: SharedServer;
  let person: Person;
  beforeAll(async () => {
    server = await useSharedServer();
    person = new Person(server);
  });
  afterAll(async () => {
    person[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const live = async () =>
    ((await server.call("GET", "/v1/sandboxes")).body as unknown as { sandboxes: Sandbox[] })
      .sandboxes;

  it("[CL6] start makes the sandbox of a checkout and finds it again; stop ends it, twice", async () => {
    const cwd = person.repo("life", "https://example.com/team/life.git");
    const made = await person.berth(["start", "--wait"], { cwd });
    expect(made).toMatchObject({ code: 0, stderr: "" });
    const id = new RegExp(`^sandbox (${idPattern}) is running \\(made\\)\n$`).exec(
      made.stdout,
    )?.[1];
    expect(id).toBeDefined();
    expect(await person.berth(["start", "--wait"], { cwd })).toEqual({
      ...{ code: 0, signal: null, stderr: "" },
      stdout: `sandbox ${id} is running (found)\n`,
    });
    expect(await person.json(["start", "--wait"], { cwd })).toMatchObject({
      ...{ made: false, replaced: null },
      sandbox: { id, state: "running", scope: { repo: "example.com/team/life", branch: "main" } },
    });
    const taken = await person.berth(["start", "--on-existing", "error"], { cwd });
    expect(taken).toEqual({
      ...{ code: 1, signal: null, stdout: "" },
      stderr:
        `error: main has a sandbox already: ${id}\n` +
        "hint: Use it, or say --on-existing replace.\n",
    });
    expect(await person.berth(["stop"], { cwd })).toEqual({
      ...{ code: 0, signal: null, stderr: "" },
      stdout: `sandbox ${id} is stopped\n`,
    });
    expect(await live()).toEqual([]);
    expect((await person.berth(["stop"], { cwd })).stdout).toBe(
      "already stopped: there is no sandbox\n",
    );
    for (const args of [[String(id)], ["--id", String(id)], ["--id", String(id), String(id)]]) {
      expect((await person.berth(["stop", ...args], { cwd })).stdout).toBe(
        `sandbox ${id} was already stopped\n`,
      );
    }
    const all = await person.berth(["stop", "--all", "--id", String(id)], { cwd });
    expect(all).toMatchObject({ code: 1, stdout: "" });
    expect(all.stderr).toContain("error: ids cannot be said together with --all or --config\n");
  });

  it("[CL6] reset puts a new one in its place in one step, and names both", async () => {
    const cwd = person.repo("reset", "https://example.com/team/reset.git");
    const { sandbox: old } = await person.json<{ sandbox: Sandbox }>(["start", "--wait"], { cwd });
    const ran = await person.berth(["reset", "--wait"], { cwd });
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    const fresh = new RegExp(`^sandbox (${idPattern}) is running \\(in place of ${old.id}\\)\n$`);
    const id = fresh.exec(ran.stdout)?.[1];
    expect(id).toBeDefined();
    const again = await person.json(["reset"], { cwd });
    expect(again).toMatchObject({ old: id, new: expect.stringMatching(`^${idPattern}$`) });
    const { sandboxes } = await person.json<Listed>(["list"], { cwd });
    expect(sandboxes.filter(({ here }) => here).map((one) => one.id)).toEqual([again.new]);
    await person.json(["stop"], { cwd });
  });

  it("[CL6] exec --reset begins in a new one; with --id, which names one, it is refused", async () => {
    const cwd = person.repo("anew", "https://example.com/team/anew.git");
    const { sandbox: old } = await person.json<{ sandbox: Sandbox }>(["start", "--wait"], { cwd });
    await server.exec(old.id, "touch /workspace/left");
    const both = ["exec", "--id", old.id, "--reset", "--json", "--", "true"];
    const refused = await person.berth(both, { cwd });
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      error: { code: "bad_usage", hint: expect.stringContaining("--id") },
    });
    expect(await live()).toMatchObject([{ id: old.id }]);
    const args = ["exec", "--reset", "--json", "--", "sh", "-c", "ls; cat README.md"];
    const ran = JSON.parse((await person.berth(args, { cwd })).stdout);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "README.md\nhello\n" });
    expect(await live()).toMatchObject([{ id: ran.sandbox }]);
    expect(ran.sandbox).not.toBe(old.id);
    await person.json(["stop"], { cwd });
  });

  it("[CL6] pause keeps its files and resume wakes it; both are told in the list", async () => {
    const cwd = person.repo("pause", "https://example.com/team/pause.git");
    const { sandbox } = await person.json<{ sandbox: Sandbox }>(["start", "--wait"], { cwd });
    await server.exec(sandbox.id, "echo kept > file");
    const state = async () => (await person.json<Listed>(["list"], { cwd })).sandboxes[0]?.state;
    expect((await person.berth(["pause"], { cwd })).stdout).toBe(
      `sandbox ${sandbox.id} is paused\n`,
    );
    expect(await state()).toBe("paused");
    expect((await person.berth(["resume"], { cwd })).stdout).toBe(
      `sandbox ${sandbox.id} is running\n`,
    );
    expect(await state()).toBe("running");
    expect((await server.exec(sandbox.id, "cat file")).body.stdout).toBe("kept\n");
    await person.json(["stop"], { cwd });
  });

  it("[CL7] twelve at once, of one checkout, make one sandbox", async () => {
    const cwd = person.repo("crowd", "https://example.com/team/crowd.git");
    const before = (await live()).length;
    const all = await Promise.all(
      Array.from({ length: 12 }, () =>
        person.json<{ made: boolean; sandbox: Sandbox }>(["start"], { cwd }),
      ),
    );
    expect(new Set(all.map(({ sandbox }) => sandbox.id)).size).toBe(1);
    expect(all.filter(({ made }) => made)).toHaveLength(1);
    expect(await live()).toHaveLength(before + 1);
    expect(person.git(cwd, "status", "--porcelain")).toBe("");
    await person.json(["stop"], { cwd });
  });

  it("[CL8] what others hold is not stopped, unless it is asked for", async () => {
    const cwd = person.repo("held", "https://example.com/team/held.git");
    const { sandbox } = await person.json<{ sandbox: Sandbox }>(["start", "--wait"], { cwd });
    const held = await server.call("POST", `/v1/sandboxes/${sandbox.id}/lease`, {
      ...{ holder: "somebody", ttlMs: 300_000 },
    });
    expect(held.status).toBe(201);
    const refused = await person.berth(["stop"], { cwd });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(
      new RegExp(`^error: ${sandbox.id}: .*somebody.*\nhint: Wait for it, or say --force\\.\n$`),
    );
    expect((await person.json<Listed>(["list"], { cwd })).sandboxes).toMatchObject([
      { id: sandbox.id, state: "running" },
    ]);
    expect(await person.berth(["stop", "--force"], { cwd })).toMatchObject({ code: 0 });
  });

  it("[CL8] what others hold is not replaced, unless it is asked for", async () => {
    const cwd = person.repo("kept", "https://example.com/team/kept.git");
    let { id } = (await person.json<{ sandbox: Sandbox }>(["start", "--wait"], { cwd })).sandbox;
    const current = async () => (await person.json<Listed>(["list"], { cwd })).sandboxes[0]?.id;
    for (const words of [
      ["reset", "--wait"],
      ["start", "--on-existing", "replace", "--wait"],
      ["exec", "--reset"],
    ]) {
      const held = await server.call("POST", `/v1/sandboxes/${id}/lease`, {
        ...{ holder: "somebody", ttlMs: 300_000, waitMs: 20_000 },
      });
      expect(held.status).toBe(201);
      const command = words[0] === "exec" ? ["--", "true"] : [];
      const refused = await person.berth([...words, ...command], { cwd });
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toMatch(/^error: .*\nhint: .* or say --force\.\n$/);
      expect(await current()).toBe(id);
      const forced = await person.berth([...words, "--force", ...command], { cwd });
      expect(forced).toMatchObject({ code: 0, stderr: "" });
      const old = id;
      id = (await current()) ?? "";
      expect(id).not.toBe(old);
    }
    for (const words of [
      ["start", "--force"],
      ["exec", "--force", "--", "true"],
    ]) {
      const bad = await person.berth(words, { cwd });
      expect(bad.stderr).toMatch(/^error: --force is for --(on-existing replace|reset)\n/);
    }
    await person.json(["stop"], { cwd });
  });

  it("[CL8] stop --all goes on where one fails, tells each, and touches no other repository", async () => {
    const other = person.repo("other", "https://example.com/team/other.git");
    const cwd = person.repo("many", "https://example.com/team/many.git");
    const kept = await person.json<{ sandbox: Sandbox }>(["start", "--wait"], { cwd: other });
    const ids: string[] = [];
    for (const branch of ["main", "feature/one", "feature/two"]) {
      if (branch !== "main") person.git(cwd, "switch", "-q", "-c", branch);
      ids.push((await person.json<{ sandbox: Sandbox }>(["start"], { cwd })).sandbox.id);
    }
    expect(new Set(ids).size).toBe(3);
    const [, second] = ids;
    await server.call("POST", `/v1/sandboxes/${second}/lease`, { ttlMs: 300_000, waitMs: 20_000 });
    const told = await person.json<{ sandboxes: Record<string, unknown>[] }>(["stop", "--all"], {
      ...{ cwd, code: 1 },
    });
    expect(told.sandboxes).toHaveLength(3);
    for (const one of told.sandboxes) {
      if (one.id === second) expect(one).toMatchObject({ error: { code: "lease_held" } });
      else expect(one).toMatchObject({ wasRunning: true, state: "destroyed" });
    }
    await person.json(["stop", "--all", "--force"], { cwd });
    expect((await live()).map(({ id }) => id)).toEqual([kept.sandbox.id]);
    await person.json(["stop"], { cwd: other });
  });

  it("[CL8] an id that is none, or nobody's, is refused", async () => {
    const wrong = await person.berth(["stop", "nosuch"]);
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toContain("error: stop: 'nosuch' is no id of a sandbox\n");
    const foreign = await person.berth(["stop", "k3v9q2m7x1c5b8n4tq0w8e2r"]);
    expect(foreign).toMatchObject({ code: 1, stdout: "" });
    expect(foreign.stderr).toContain("error: k3v9q2m7x1c5b8n4tq0w8e2r: ");
    const both = await person.berth(["pause", "--id", "k3v9q2m7x1c5b8n4tq0w8e2r", "--config", "a"]);
    expect(both.stderr).toContain("error: --id and --config cannot be said together\n");
    const none = await person.berth(["pause"], { cwd: person.repo("none") });
    expect(none).toMatchObject({
      ...{ code: 1, stdout: "" },
      stderr:
        "error: there is no sandbox for main\n" +
        "hint: `berth start` makes one, `berth list` shows those that are there.\n",
    });
    expect(await live()).toEqual([]);
  });
});
