import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, it } from "vitest";
import { useSharedServer } from "../shared-server.ts";
import { CliUser } from "./cli-user.ts";

const server = await useSharedServer();
const user = new CliUser();
afterEach(async () => {
  await user.berth(["login", "--forget"]);
});
afterAll(async () => {
  user[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
});

const loginPath = () => join(user.home, ".config/berth/login.json");

it("[CL24] login stores a working key for its owner only, and removes it again", async () => {
  const args = ["login", "--url", `${server.url}/`, "--key-stdin"];
  const output = await user.output(args, { input: `${server.key}\n` });
  expect(output).toBe(`Logged in to ${server.url}; stored in ${loginPath()}.\n`);
  expect(statSync(loginPath()).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(user.home, ".config/berth"))).toEqual(["login.json"]);
  expect(await user.json(["list"])).toEqual({ sandboxes: [] });
  expect((await user.berth(["login", "--forget"])).stdout).toBe("Removed the login.\n");
  expect(existsSync(loginPath())).toBe(false);
  expect(await user.berth(["list"])).toMatchObject({ code: 1 });
});

it("[CL24] a key that does not work is not stored", async () => {
  const args = ["login", "--url", server.url, "--key-stdin"];
  const wrong = await user.failure(args, { input: "berth_wrong_key\n" });
  expect(wrong).toMatch(/^error: The key is unknown\.\nhint: Run `berth login` /);
  for (const input of ["", "\n", "two words\n"]) {
    expect(await user.failure(args, { input })).toMatch(/^error: /);
  }
  const url = await user.berth(["login", "--url", "nowhere", "--key-stdin"], { input: "k" });
  expect(url.stderr).toMatch(/^error: --url must be an http or https URL, not 'nowhere'\./);
  const typed = await user.berth(["login", "--url", server.url], { input: server.key });
  expect(typed.stderr).toMatch(/^error: There is no terminal to type the key on\.\n/);
  expect(existsSync(loginPath())).toBe(false);
});

it("[CL24] the environment overrides the login, and a stored key goes to its own server only", async () => {
  await user.json(["login", "--url", server.url, "--key-stdin"], { input: server.key });
  const elsewhere = await user.berth(["list"], { env: { BERTH_URL: "http://127.0.0.1:1" } });
  expect(elsewhere.stderr).toMatch(/^error: There is no key for http:\/\/127\.0\.0\.1:1\.\n/);
  const same = { BERTH_URL: `${server.url}/` };
  expect(await user.json(["list"], { env: same })).toEqual({ sandboxes: [] });
  const key = await user.berth(["list"], { env: { BERTH_KEY: "berth_wrong_key" } });
  expect(key.stderr).toMatch(/^error: The key is unknown\.\n/);
  writeFileSync(loginPath(), "{");
  const broken = await user.failure(["list"]);
  expect(broken).toBe(
    `error: ${loginPath()} does not contain a valid login.\nhint: Run \`berth login\` again.\n`,
  );
});

it("[CL24] the key of a server started here is found", async () => {
  const env = { BERTH_URL: server.url };
  expect(await user.json(["list"], { env: { ...env, BERTH_DATA: server.data } })).toEqual({
    sandboxes: [],
  });
  const cwd = join(user.home, "here");
  mkdirSync(join(cwd, ".berth"), { recursive: true });
  writeFileSync(join(cwd, ".berth/key"), `${server.key}\n`);
  expect(await user.json(["list"], { cwd, env })).toEqual({ sandboxes: [] });
  // And is sent to no other server.
  const far = await user.berth(["list"], { cwd, env: { BERTH_URL: "https://berth.example.com" } });
  expect(far.stderr).toMatch(/^error: There is no key for https:\/\/berth\.example\.com\.\n/);
});
