import { expect, it } from "vitest";
import type { Sandbox } from "../../../src/protocol/sandbox.ts";
import { useCliUser } from "./cli-user.ts";

const idPattern = "[a-z][a-z0-9]{23}";
type Listed = { sandboxes: { id: string; state: string; here: boolean }[] };

const { server, user, listSandboxes } = await useCliUser();

it("[CL6] start creates the sandbox of a checkout and finds it again; rm destroys it and can be repeated", async () => {
  const cwd = user.repo("life", "https://example.com/team/life.git");
  const pattern = new RegExp(`^Sandbox (${idPattern}) is running \\(created\\)\\.\n$`);
  const [, id] = pattern.exec(await user.output(["start", "--wait"], { cwd })) ?? [];
  expect(id).toBeDefined();
  const found = await user.output(["start", "--wait"], { cwd });
  expect(found).toBe(`Sandbox ${id} is running (found).\n`);
  expect(await user.json(["start", "--wait"], { cwd })).toMatchObject({
    ...{ made: false, replaced: null },
    sandbox: { id, state: "running", scope: { repo: "example.com/team/life", branch: "main" } },
  });
  const refused = await user.failure(["start", "--on-existing", "error"], { cwd });
  expect(refused).toBe(
    `error: main already has a sandbox: ${id}.\n` +
      "hint: Use that one, or replace it with `--on-existing replace`.\n",
  );
  expect(await user.output(["rm"], { cwd })).toBe(`Sandbox ${id} is removed.\n`);
  expect(await listSandboxes()).toEqual([]);
  expect((await user.berth(["rm"], { cwd })).stdout).toBe("There is no sandbox to remove.\n");
  for (const args of [[String(id)], ["--id", String(id)], ["--id", String(id), String(id)]]) {
    const output = await user.output(["rm", ...args], { cwd });
    expect(output).toBe(`Sandbox ${id} was already removed.\n`);
  }
  const all = await user.failure(["rm", "--all", "--id", String(id)], { cwd });
  expect(all).toContain("error: Ids cannot be combined with `--all` or `--config`.\n");
});

it("[CL6] reset replaces the sandbox in one step and names both", async () => {
  const cwd = user.repo("reset", "https://example.com/team/reset.git");
  const old = await user.startSandbox(cwd);
  const pattern = new RegExp(`^Sandbox (${idPattern}) is running \\(replaced ${old.id}\\)\\.\n$`);
  const [, id] = pattern.exec(await user.output(["reset", "--wait"], { cwd })) ?? [];
  expect(id).toBeDefined();
  const second = await user.json(["reset"], { cwd });
  expect(second).toMatchObject({ old: id, new: expect.stringMatching(`^${idPattern}$`) });
  const { sandboxes } = await user.json<Listed>(["list"], { cwd });
  expect(sandboxes.filter(({ here }) => here).map((result) => result.id)).toEqual([second.new]);
  await user.json(["rm", "--yes"], { cwd });
});

it("[CL6] exec --reset starts with a new sandbox; with --id it is refused", async () => {
  const cwd = user.repo("renewed", "https://example.com/team/renewed.git");
  const old = await user.startSandbox(cwd);
  await server.exec(old.id, "touch /workspace/left");
  const both = ["exec", "--id", old.id, "--reset", "--json", "--", "true"];
  const refused = await user.berth(both, { cwd });
  expect(refused.code).toBe(125);
  expect(JSON.parse(refused.stdout)).toMatchObject({
    error: { code: "bad_usage", hint: expect.stringContaining("--id") },
  });
  expect(await listSandboxes()).toMatchObject([{ id: old.id }]);
  const unsynced = await user.failure(["exec", "--reset", "--", "true"], { cwd });
  expect(unsynced).toBe(
    `error: Sandbox ${old.id} has 1 file that no checkout has.\n` +
      "hint: `berth pull` fetches its files. `--yes` removes it anyway.\n",
  );
  const args = ["exec", "--reset", "--yes", "--json", "--", "sh", "-c", "ls; cat README.md"];
  const ran = JSON.parse((await user.berth(args, { cwd })).stdout);
  expect(ran).toMatchObject({ exitCode: 0, stdout: "README.md\nhello\n" });
  expect(await listSandboxes()).toMatchObject([{ id: ran.sandbox }]);
  expect(ran.sandbox).not.toBe(old.id);
  await user.json(["rm", "--yes"], { cwd });
});

it("[CL6] pause keeps the files and resume wakes the sandbox; the list shows both", async () => {
  const cwd = user.repo("pause", "https://example.com/team/pause.git");
  const sandbox = await user.startSandbox(cwd);
  await server.exec(sandbox.id, "echo kept > file");
  const state = async () => (await user.json<Listed>(["list"], { cwd })).sandboxes[0]?.state;
  expect((await user.berth(["pause"], { cwd })).stdout).toBe(`Sandbox ${sandbox.id} is paused.\n`);
  expect(await state()).toBe("paused");
  expect(await user.output(["resume"], { cwd })).toBe(`Sandbox ${sandbox.id} is running.\n`);
  expect(await state()).toBe("running");
  expect((await server.exec(sandbox.id, "cat file")).body.stdout).toBe("kept\n");
  await user.json(["rm", "--yes"], { cwd });
});

it("[CL7] twelve concurrent starts of one checkout create one sandbox", async () => {
  const cwd = user.repo("crowd", "https://example.com/team/crowd.git");
  const before = (await listSandboxes()).length;
  type Started = { made: boolean; sandbox: Sandbox };
  const runs = Array.from({ length: 12 }, () => user.json<Started>(["start"], { cwd }));
  const all = await Promise.all(runs);
  expect(new Set(all.map(({ sandbox }) => sandbox.id)).size).toBe(1);
  expect(all.filter(({ made }) => made)).toHaveLength(1);
  expect(await listSandboxes()).toHaveLength(before + 1);
  expect(user.git(cwd, "status", "--porcelain")).toBe("");
  await user.json(["rm", "--yes"], { cwd });
});

it("[CL8] a held sandbox is only removed with --force", async () => {
  const cwd = user.repo("held", "https://example.com/team/held.git");
  const sandbox = await user.startSandbox(cwd);
  const call = { holder: "somebody", ttlMs: 300_000 };
  const held = await server.call("POST", `/v1/sandboxes/${sandbox.id}/lease`, call);
  expect(held.status).toBe(201);
  const pattern = `^error: ${sandbox.id}: .*somebody.*\nhint: Wait for the lease, or use .--force.\\.\n$`;
  expect(await user.failure(["rm"], { cwd })).toMatch(new RegExp(pattern));
  const { sandboxes } = await user.json<Listed>(["list"], { cwd });
  expect(sandboxes).toMatchObject([{ id: sandbox.id, state: "running" }]);
  expect(await user.berth(["rm", "--force", "--yes"], { cwd })).toMatchObject({ code: 0 });
});

it("[CL8] a held sandbox is only replaced with --force", async () => {
  const cwd = user.repo("kept", "https://example.com/team/kept.git");
  let { id } = await user.startSandbox(cwd);
  const current = async () => (await user.json<Listed>(["list"], { cwd })).sandboxes[0]?.id;
  for (const args of [
    ["reset", "--wait"],
    ["start", "--on-existing", "replace", "--wait"],
    ["exec", "--reset"],
  ]) {
    const call = { holder: "somebody", ttlMs: 300_000, waitMs: 20_000 };
    const held = await server.call("POST", `/v1/sandboxes/${id}/lease`, call);
    expect(held.status).toBe(201);
    const command = args[0] === "exec" ? ["--", "true"] : [];
    const refused = await user.failure([...args, ...command], { cwd });
    expect(refused).toMatch(/^error: .*\nhint: .* or use `--force`\.\n$/);
    expect(await current()).toBe(id);
    const forced = await user.berth([...args, "--force", "--yes", ...command], { cwd });
    expect(forced).toMatchObject({ code: 0, stderr: "" });
    const old = id;
    id = (await current()) ?? "";
    expect(id).not.toBe(old);
  }
  const alone = /^error: `--force` can only be used with `--(on-existing replace|reset)`\.\n/;
  expect(await user.failure(["start", "--force"], { cwd })).toMatch(alone);
  expect(await user.failure(["exec", "--force", "--", "true"], { cwd })).toMatch(alone);
  await user.json(["rm", "--yes"], { cwd });
});

it("[CL8] rm --all continues after a failure, reports each sandbox, and touches no other repository", async () => {
  const other = user.repo("other", "https://example.com/team/other.git");
  const cwd = user.repo("many", "https://example.com/team/many.git");
  const kept = await user.startSandbox(other);
  const ids: string[] = [];
  for (const branch of ["main", "feature/one", "feature/two"]) {
    if (branch !== "main") user.git(cwd, "switch", "-q", "-c", branch);
    ids.push((await user.json<{ sandbox: Sandbox }>(["start"], { cwd })).sandbox.id);
  }
  expect(new Set(ids).size).toBe(3);
  const [, second] = ids;
  await server.call("POST", `/v1/sandboxes/${second}/lease`, { ttlMs: 300_000, waitMs: 20_000 });
  type Document = { sandboxes: Record<string, unknown>[] };
  const { sandboxes } = await user.json<Document>(["rm", "--all"], { cwd, code: 1 });
  expect(sandboxes).toHaveLength(3);
  for (const result of sandboxes) {
    if (result.id === second) expect(result).toMatchObject({ error: { code: "lease_held" } });
    else expect(result).toMatchObject({ wasThere: true, state: "destroyed" });
  }
  await user.json(["rm", "--all", "--force", "--yes"], { cwd });
  expect((await listSandboxes()).map(({ id }) => id)).toEqual([kept.id]);
  await user.json(["rm", "--yes"], { cwd: other });
});

it("[CL8] an invalid or unknown id is refused", async () => {
  const wrong = await user.failure(["rm", "nosuch"]);
  expect(wrong).toContain("error: `rm`: 'nosuch' is not the id of a sandbox.\n");
  const foreign = await user.failure(["rm", "k3v9q2m7x1c5b8n4tq0w8e2r"]);
  expect(foreign).toContain("error: k3v9q2m7x1c5b8n4tq0w8e2r: ");
  const both = await user.berth(["pause", "--id", "k3v9q2m7x1c5b8n4tq0w8e2r", "--config", "a"]);
  expect(both.stderr).toContain("error: `--id` and `--config` cannot be combined.\n");
  const none = await user.failure(["pause"], { cwd: user.repo("none") });
  expect(none).toBe(
    "error: There is no sandbox for main.\n" +
      "hint: Run `berth start` to create one, or `berth list` to see the existing ones.\n",
  );
  expect(await listSandboxes()).toEqual([]);
});
