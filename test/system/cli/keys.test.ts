/** The keys of a server by the command and by its file, while the server runs. */
import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { until } from "../../until.ts";
import { useSharedServer } from "../shared-server.ts";
import { CliUser } from "./cli-user.ts";

const server = await useSharedServer();
const { tenant, data, url } = server;
const user = new CliUser({ url, key: server.key });
const env = { BERTH_ADMIN_KEY: readFileSync(join(data, "admin-key"), "utf8").trim() };
const file = join(data, "keys");
afterAll(async () => {
  rmSync(file, { force: true });
  user[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

const statusWith = async (key: string, path = "/v1/sandboxes") => {
  const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  await response.body?.cancel();
  return response.status;
};

it("[KY7] the command adds, lists and removes keys; what a removed one has open ends, its sandbox stays", async () => {
  const added = await user.berth(["keys", "add", "alice", "--tenant", tenant], { env });
  expect(added).toMatchObject({ code: 0, stderr: expect.stringContaining("not shown again") });
  const key = added.stdout.trim();
  const repo = user.repo("theirs");
  const asAlice = { cwd: repo, env: { BERTH_KEY: key } };
  expect((await user.berth(["exec", "--", "echo", "hello"], asAlice)).stdout).toBe("hello\n");
  const { body: listed } = await server.call("GET", "/v1/sandboxes");
  expect(listed.sandboxes).toEqual([expect.objectContaining({ madeBy: "alice" })]);
  const shown = await user.output(["keys"], { env });
  expect(shown).toMatch(new RegExp(`^[0-9a-f]{16} +${tenant} +alice .* all$`, "m"));
  expect(shown).not.toContain(key);

  const events = await fetch(`${url}/v1/events?follow=1`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const ends = events.text().catch(() => "cut");
  const running = user.start(["exec", "--", "sleep", "1000"], asAlice);
  await until("the command holds the lease", async () => {
    const { body } = await server.call("GET", "/v1/sandboxes");
    const [{ id = "" } = {}] = body.sandboxes as { id: string }[];
    return (await server.call("GET", `/v1/sandboxes/${id}/lease`)).body.state === "held";
  });
  expect(await user.output(["keys", "remove", "alice", "--tenant", tenant], { env })).toMatch(
    /^Removed the key alice \([0-9a-f]{16}\)\.\n$/,
  );
  await ends;
  expect((await running.ended).code).not.toBe(0);
  expect(await statusWith(key)).toBe(401);
  expect((await server.call("GET", "/v1/sandboxes")).body.sandboxes).toHaveLength(1);
  const repeated = await user.failure(["keys", "remove", "alice", "--tenant", tenant], { env });
  expect(repeated).toMatch(/has no key named alice/);
});

it("[KY7] without an administrator's key the command says where it is", async () => {
  const failed = await user.berth(["keys"], { env: { BERTH_ADMIN_KEY: "" } });
  expect(failed).toMatchObject({ code: expect.any(Number) });
  expect(failed.stderr).toMatch(/no administrator's key for .*\n.*BERTH_ADMIN_KEY/);
  expect(await user.failure(["keys"], { env: { BERTH_ADMIN_KEY: server.key } })).toMatch(
    /needs an administrator's key/,
  );
});

it("[KY6] the keys file is read again on each change, without a restart", async () => {
  const key = "a-key-that-was-made-elsewhere-with-32-characters";
  const sha256 = createHash("sha256").update(key).digest("hex");
  expect(await statusWith(key)).toBe(401);
  writeFileSync(file, `# the team\n${tenant}/bob ${sha256} rights=read expires=2999-01-01\n`);
  await until("the key works", async () => (await statusWith(key)) === 200);
  const { keys } = (await user.json(["keys"], { env })) as { keys: { name: string }[] };
  expect(keys.find(({ name }) => name === "bob")).toMatchObject({ source: "file", tenant });
  writeFileSync(file, "");
  await until("the key is refused", async () => (await statusWith(key)) === 401);
});
