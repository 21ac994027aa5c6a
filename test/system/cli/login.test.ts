import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { Person } from "./cli-user.ts";

describe("where the server and its key come from", () => {
  let server: SharedServer;
  let person: Person;
  beforeAll(async () => {
    server = await useSharedServer();
    person = new Person();
  });
  afterEach(async () => {
    await person.berth(["login", "--forget"]);
  });
  afterAll(async () => {
    person[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const stored = () => join(person.home, ".config/berth/login.json");

  it("[CL24] login keeps a key that works, for its owner alone, and forgets it", async () => {
    const ran = await person.berth(["login", "--url", `${server.url}/`, "--key-stdin"], {
      input: `${server.key}\n`,
    });
    expect(ran).toEqual({
      ...{ code: 0, signal: null, stderr: "" },
      stdout: `logged in to ${server.url}; kept in ${stored()}\n`,
    });
    expect(statSync(stored()).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(person.home, ".config/berth"))).toEqual(["login.json"]);
    expect(await person.json(["list"])).toEqual({ sandboxes: [] });
    expect((await person.berth(["login", "--forget"])).stdout).toBe("the login is forgotten\n");
    expect(existsSync(stored())).toBe(false);
    expect(await person.berth(["list"])).toMatchObject({ code: 1 });
  });

  it("[CL24] a key that does not work is not kept", async () => {
    const args = ["login", "--url", server.url, "--key-stdin"];
    const wrong = await person.berth(args, { input: "berth_wrong_key\n" });
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toMatch(/^error: The key is not known here\.\nhint: `berth login` /);
    for (const input of ["", "\n", "two words\n"]) {
      expect(await person.berth(args, { input })).toMatchObject({ code: 1, stdout: "" });
    }
    const url = await person.berth(["login", "--url", "nowhere", "--key-stdin"], { input: "k" });
    expect(url.stderr).toMatch(
      /^error: --url must be an address with http or https, not 'nowhere'/,
    );
    const typed = await person.berth(["login", "--url", server.url], { input: server.key });
    expect(typed.stderr).toMatch(/^error: there is no terminal to type the key on\n/);
    expect(existsSync(stored())).toBe(false);
  });

  it("[CL24] the environment wins over the login, and a kept key goes to its own server only", async () => {
    await person.json(["login", "--url", server.url, "--key-stdin"], { input: server.key });
    const elsewhere = await person.berth(["list"], { env: { BERTH_URL: "http://127.0.0.1:1" } });
    expect(elsewhere.stderr).toMatch(/^error: no key is known for http:\/\/127\.0\.0\.1:1\n/);
    const same = { BERTH_URL: `${server.url}/` };
    expect(await person.json(["list"], { env: same })).toEqual({ sandboxes: [] });
    const key = await person.berth(["list"], { env: { BERTH_KEY: "berth_wrong_key" } });
    expect(key.stderr).toMatch(/^error: The key is not known here\.\n/);
    writeFileSync(stored(), "{");
    const broken = await person.berth(["list"]);
    expect(broken).toEqual({
      ...{ code: 1, signal: null, stdout: "" },
      stderr: `error: ${stored()} does not hold a login\nhint: Run \`berth login\` again.\n`,
    });
  });

  it("[CL24] the key of a server started here is found", async () => {
    const env = { BERTH_URL: server.url };
    expect(await person.json(["list"], { env: { ...env, BERTH_DATA: server.data } })).toEqual({
      sandboxes: [],
    });
    const cwd = join(person.home, "here");
    mkdirSync(join(cwd, ".berth"), { recursive: true });
    writeFileSync(join(cwd, ".berth/key"), `${server.key}\n`);
    expect(await person.json(["list"], { cwd, env })).toEqual({ sandboxes: [] });
    // And goes nowhere else.
    const far = await person.berth(["list"], {
      cwd,
      env: { BERTH_URL: "https://berth.example.com" },
    });
    expect(far.stderr).toMatch(/^error: no key is known for https:\/\/berth\.example\.com\n/);
  });
});
