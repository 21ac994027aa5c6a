import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Sandbox } from "../../../src/protocol/sandbox.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { until } from "../until.ts";
import { Person } from "./cli-user.ts";

describe("a sandbox by its configuration", () => {
  let server: SharedServer;
  let person: Person;
  beforeAll(async () => {
    server = await useSharedServer();
    person = new Person(server);
  });
  afterEach(async () => {
    const { sandboxes } = (await server.call("GET", "/v1/sandboxes")).body as unknown as {
      sandboxes: Sandbox[];
    };
    for (const { id } of sandboxes) await server.call("DELETE", `/v1/sandboxes/${id}?force=true`);
  });
  afterAll(async () => {
    person[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const repo = (name: string, config: object) => {
    const cwd = person.repo(name, `https://example.com/team/${name}.git`);
    person.write(cwd, ".berth/sandbox.json", JSON.stringify(config));
    person.commit(cwd, "configured");
    return cwd;
  };
  const configure = (cwd: string, config: object) =>
    person.write(cwd, ".berth/sandbox.json", JSON.stringify(config));
  const start = async (cwd: string) =>
    (await person.json<{ sandbox: Sandbox }>(["start", "--wait"], { cwd })).sandbox;
  const output = async (id: string, command: string) =>
    (await server.exec(id, command)).body.stdout;

  it("[CL20] is made as it says, and says what it was made by", async () => {
    const cwd = repo("made", {
      ...{ env: { GREETING: "hello" }, idleTimeoutMs: 90_000, onIdle: "none" },
      ...{ network: { internet: false }, ports: [3000, 4000] },
    });
    const sandbox = await start(cwd);
    expect(sandbox).toMatchObject({
      ...{ idleTimeoutMs: 90_000, onIdle: "none", network: { internet: false } },
      client: { configFile: ".berth/sandbox.json", configHash: expect.stringMatching(/^\w{16}$/) },
    });
    expect(await output(sandbox.id, "echo $GREETING")).toBe("hello\n");
    const opened = await person.berth(["open"], { cwd });
    expect(opened.stdout).toMatch(/^http:\/\/3000-.*\nhttp:\/\/4000-.*\n$/);
  });

  it("[CL20] a change of it is told, with what to do, and the sandbox goes on as it was made", async () => {
    const cwd = repo("drift", { env: { A: "1" } });
    const { id } = await start(cwd);
    const warning =
      `warning: .berth/sandbox.json has changed since sandbox ${id} was made\n` +
      "hint: `berth reset` makes a new one; until then it goes on as it was made.\n";
    configure(cwd, { env: { A: "2" } });
    expect(await person.berth(["start", "--wait"], { cwd })).toEqual({
      ...{ code: 0, signal: null, stderr: warning },
      stdout: `sandbox ${id} is running (found)\n`,
    });
    // Once for each change; programs are told each time.
    expect(await person.berth(["start"], { cwd })).toMatchObject({ code: 0, stderr: "" });
    expect(await person.json(["start"], { cwd })).toMatchObject({ configChanged: true });
    const ran = await person.berth(["exec", "--json", "--", "true"], { cwd });
    expect(JSON.parse(ran.stdout)).toMatchObject({ exitCode: 0, configChanged: true });
    configure(cwd, { env: { A: "3" } });
    expect((await person.berth(["exec", "--", "true"], { cwd })).stderr).toBe(warning);
    // Written in another way it says the same.
    person.write(cwd, ".berth/sandbox.json", '{\n  "env": { "A": "1" }\n}\n');
    expect(await person.berth(["start"], { cwd })).toMatchObject({ code: 0, stderr: "" });
    expect(await person.json(["start"], { cwd })).toMatchObject({ configChanged: false });
    configure(cwd, { env: { A: "3" } });
    expect((await person.berth(["start"], { cwd })).stderr).toBe(warning);
    expect(await person.berth(["reset", "--wait"], { cwd })).toMatchObject({ code: 0, stderr: "" });
    expect(await person.berth(["start"], { cwd })).toMatchObject({ code: 0, stderr: "" });
  });

  it("[CL21] its set-up commands run once, in order, on the checkout's files, before anybody uses it", async () => {
    const cwd = repo("set-up", {
      setup: ["cat README.md > copy", "cat copy >> runs; sleep 0.3", "wc -l < runs > count"],
    });
    person.write(cwd, "README.md", "changed, not committed\n");
    // Whoever comes while they run waits for their end.
    const ids = await Promise.all(Array.from({ length: 4 }, async () => (await start(cwd)).id));
    const [id = ""] = ids;
    expect(new Set(ids)).toEqual(new Set([id]));
    expect(await output(id, "cat runs count")).toBe("changed, not committed\n1\n");
    expect((await start(cwd)).metadata).toEqual({});
    expect(await output(id, "cat count")).toBe("1\n");
  });

  it("[CL21] where one fails its output is shown, the sandbox stays and is named, and the next command tries again", async () => {
    const cwd = repo("fails", {
      setup: ["touch first", "echo out; echo why >&2; test -e /tmp/ready"],
    });
    const ran = await person.berth(["start", "--wait"], { cwd });
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    const [, id = ""] = /set-up of sandbox (\w+) failed/.exec(ran.stderr) ?? [];
    expect(ran.stderr).toBe(
      `out\nwhy\nerror: set-up of sandbox ${id} failed: ` +
        "`echo out; echo why >&2; test -e /tmp/ready` ended with 1\n" +
        `hint: \`berth exec --id ${id} -- …\` looks around in it; the next command here tries again.\n`,
    );
    expect(await output(id, "ls first")).toBe("first\n");
    const told = await person.json(["start", "--wait"], { cwd, code: 1 });
    expect(told).toMatchObject({
      error: { code: "setup_failed", sandbox: id, exitCode: 1, output: "out\nwhy" },
    });
    await server.exec(id, "touch /tmp/ready");
    expect((await start(cwd)).id).toBe(id);
    expect((await start(cwd)).metadata).toEqual({});
  });

  it("[LV12] --wait bounds also the wait for somebody's set-up", async () => {
    const cwd = repo("slow", { setup: ["touch begun; sleep 50"] });
    const first = person.start(["start", "--wait"], { cwd });
    let id = "";
    await until("its set-up runs", async () => {
      const listed = (await server.call("GET", "/v1/sandboxes")).body as unknown as {
        sandboxes: Sandbox[];
      };
      id = listed.sandboxes.find(({ scope }) => scope?.repo.endsWith("/slow"))?.id ?? "";
      if (id === "") return false;
      return (await server.call("GET", `/v1/sandboxes/${id}/files/stat?path=begun`)).status === 200;
    });
    for (const words of [["exec"], ["lock"]]) {
      const ran = await person.berth([...words, "--wait", "1", "--", "true"], { cwd });
      expect(ran).toMatchObject({ code: 1, stdout: "" });
      expect(ran.stderr).toMatch(/^error: .*\nhint: Wait longer by --wait/m);
    }
    first.child.kill("SIGKILL");
    await first.ended;
  });

  it("[CL21] whoever comes after one who was killed in the midst of it runs them", async () => {
    const cwd = repo("killed", { setup: ["touch begun; test -e go || sleep 50", "touch done"] });
    const first = person.start(["start", "--wait"], { cwd });
    let id = "";
    await until("its set-up runs", async () => {
      const listed = (await server.call("GET", "/v1/sandboxes")).body as unknown as {
        sandboxes: Sandbox[];
      };
      id = listed.sandboxes.find(({ scope }) => scope?.repo.endsWith("/killed"))?.id ?? "";
      if (id === "") return false;
      const seen = await server.call("GET", `/v1/sandboxes/${id}/files/stat?path=begun`);
      return seen.status === 200;
    });
    first.child.kill("SIGKILL");
    await first.ended;
    await until("its lease is free", async () => {
      const lease = await server.call("GET", `/v1/sandboxes/${id}/lease`);
      return lease.body.state === "free";
    });
    await server.exec(id, "touch go");
    expect((await start(cwd)).id).toBe(id);
    expect(await output(id, "ls done")).toBe("done\n");
  });
});
