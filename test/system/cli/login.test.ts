import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
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

it("[CL24] [SD17] a server that this user runs is found, and its key goes nowhere else", async () => {
  const none = await user.failure(["list"]);
  expect(none).toMatch(/^error: No server is known: /);
  expect(await user.json(["list"], { env: { BERTH_DATA: server.data } })).toEqual({
    sandboxes: [],
  });
  // The record of the data folder of the current folder, with the key next to it.
  const cwd = join(user.home, "here");
  mkdirSync(join(cwd, ".berth"), { recursive: true });
  copyFileSync(join(server.data, "server.json"), join(cwd, ".berth/server.json"));
  writeFileSync(join(cwd, ".berth/key"), `${server.key}\n`);
  expect(await user.json(["list"], { cwd })).toEqual({ sandboxes: [] });
  const far = await user.berth(["list"], { cwd, env: { BERTH_URL: "http://127.0.0.1:1" } });
  expect(far.stderr).toMatch(/^error: There is no key for http:\/\/127\.0\.0\.1:1\.\n/);
  // From any other folder, by the record of the user.
  const record = join(user.home, "run/berth/server.json");
  mkdirSync(dirname(record), { recursive: true });
  copyFileSync(join(server.data, "server.json"), record);
  expect(statSync(join(server.data, "server.json")).mode & 0o777).toBe(0o600);
  expect(await user.json(["list"])).toEqual({ sandboxes: [] });
  // What a server left after a crash, when another process has its PID.
  const stale = { ...JSON.parse(readFileSync(record, "utf8")), startTime: "1" };
  writeFileSync(record, JSON.stringify(stale));
  expect(await user.failure(["list"])).toBe(none);
  rmSync(record);
});
