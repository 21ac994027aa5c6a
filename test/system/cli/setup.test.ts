import { afterEach, expect, it } from "vitest";
import { until } from "../../until.ts";
import { useCliUser } from "./cli-user.ts";

const { server, user, listSandboxes } = await useCliUser();

afterEach(async () => {
  for (const { id } of await listSandboxes()) {
    await server.call("DELETE", `/v1/sandboxes/${id}?force=true`);
  }
});

const repo = (name: string, config: object) => {
  const cwd = user.repo(name, `https://example.com/team/${name}.git`);
  user.write(cwd, ".berth/sandbox.json", JSON.stringify(config));
  user.commit(cwd, "configured");
  return cwd;
};
const configure = (cwd: string, config: object) =>
  user.write(cwd, ".berth/sandbox.json", JSON.stringify(config));
/** Resolves to the sandbox of the repository once its set-up has made the file `begun`. */
const waitForSetup = async (name: string) => {
  let id = "";
  await until("its set-up runs", async () => {
    const all = await listSandboxes();
    id = all.find(({ scope }) => scope?.repo.endsWith(`/${name}`))?.id ?? "";
    if (id === "") return false;
    return (await server.call("GET", `/v1/sandboxes/${id}/files/stat?path=begun`)).status === 200;
  });
  return id;
};
const output = async (id: string, command: string) => (await server.exec(id, command)).body.stdout;

it("[CL20] creates the sandbox accordingly and is recorded in it", async () => {
  const policy = { idleTimeoutMs: 90_000, onIdle: "none", network: { internet: false } };
  const cwd = repo("made", { ...policy, env: { GREETING: "hello" }, ports: [3000, 4000] });
  const sandbox = await user.startSandbox(cwd);
  const configHash = expect.stringMatching(/^\w{16}$/);
  const client = { configFile: ".berth/sandbox.json", configHash };
  expect(sandbox).toMatchObject({ ...policy, client });
  expect(await output(sandbox.id, "echo $GREETING")).toBe("hello\n");
  const opened = await user.berth(["open"], { cwd });
  expect(opened.stdout).toMatch(/^http:\/\/3000-.*\nhttp:\/\/4000-.*\n$/);
});

it("[CL20] a change is reported with the next step, and the sandbox keeps the old configuration", async () => {
  const cwd = repo("drift", { env: { A: "1" } });
  const { id } = await user.startSandbox(cwd);
  const warning =
    `warning: \`.berth/sandbox.json\` has changed since sandbox ${id} was created.\n` +
    "hint: The sandbox keeps its old configuration. `berth reset` creates a new one.\n";
  configure(cwd, { env: { A: "2" } });
  const found = { code: 0, stdout: `Sandbox ${id} is running (found).\n`, stderr: warning };
  expect(await user.berth(["start", "--wait"], { cwd })).toMatchObject(found);
  // Once for each change; with `--json` each time.
  expect(await user.berth(["start"], { cwd })).toMatchObject({ code: 0, stderr: "" });
  expect(await user.json(["start"], { cwd })).toMatchObject({ configChanged: true });
  const ran = await user.berth(["exec", "--json", "--", "true"], { cwd });
  expect(JSON.parse(ran.stdout)).toMatchObject({ exitCode: 0, configChanged: true });
  configure(cwd, { env: { A: "3" } });
  expect((await user.berth(["exec", "--", "true"], { cwd })).stderr).toBe(warning);
  // Formatted differently it is the same configuration.
  user.write(cwd, ".berth/sandbox.json", '{\n  "env": { "A": "1" }\n}\n');
  expect(await user.berth(["start"], { cwd })).toMatchObject({ code: 0, stderr: "" });
  expect(await user.json(["start"], { cwd })).toMatchObject({ configChanged: false });
  configure(cwd, { env: { A: "3" } });
  expect((await user.berth(["start"], { cwd })).stderr).toBe(warning);
  expect(await user.berth(["reset", "--wait"], { cwd })).toMatchObject({ code: 0, stderr: "" });
  expect(await user.berth(["start"], { cwd })).toMatchObject({ code: 0, stderr: "" });
});

it("[CL21] runs its set-up commands once, in order, on the checkout's files, before the first use", async () => {
  const cwd = repo("set-up", {
    setup: ["cat README.md > copy", "cat copy >> runs; sleep 0.3", "wc -l < runs > count"],
  });
  user.write(cwd, "README.md", "changed, not committed\n");
  // Commands that come meanwhile wait for them.
  const ids = await Promise.all(
    Array.from({ length: 4 }, async () => (await user.startSandbox(cwd)).id),
  );
  const [id = ""] = ids;
  expect(new Set(ids)).toEqual(new Set([id]));
  expect(await output(id, "cat runs count")).toBe("changed, not committed\n1\n");
  expect((await user.startSandbox(cwd)).metadata).toEqual({});
  expect(await output(id, "cat count")).toBe("1\n");
});

it("[CL21] a failed set-up shows its output and the sandbox, and the next command tries again", async () => {
  const cwd = repo("fails", {
    setup: ["touch first", "echo out; echo why >&2; test -e /tmp/ready"],
  });
  const ran = await user.berth(["start", "--wait"], { cwd });
  expect(ran).toMatchObject({ code: 1, stdout: "" });
  const [, id = ""] = /Set-up of sandbox (\w+) failed/.exec(ran.stderr) ?? [];
  expect(ran.stderr).toBe(
    `out\nwhy\nerror: Set-up of sandbox ${id} failed: ` +
      "`echo out; echo why >&2; test -e /tmp/ready` exited with 1.\n" +
      `hint: Inspect it with \`berth exec --id ${id} -- …\`. The next command in this checkout runs the set-up again.\n`,
  );
  expect(await output(id, "ls first")).toBe("first\n");
  const document = await user.json(["start", "--wait"], { cwd, code: 1 });
  expect(document).toMatchObject({
    error: { code: "setup_failed", sandbox: id, exitCode: 1, output: "out\nwhy" },
  });
  await server.exec(id, "touch /tmp/ready");
  expect((await user.startSandbox(cwd)).id).toBe(id);
  expect((await user.startSandbox(cwd)).metadata).toEqual({});
});

it("[LV12] --wait limits the wait for another command's set-up too", async () => {
  const cwd = repo("slow", { setup: ["touch begun; sleep 50"] });
  const first = user.start(["start", "--wait"], { cwd });
  await waitForSetup("slow");
  for (const command of [["exec"], ["lock"]]) {
    const ran = await user.failure([...command, "--wait", "1", "--", "true"], { cwd });
    expect(ran).toMatch(/^error: .*\nhint: Wait longer with `--wait`/m);
  }
  first.child.kill("SIGKILL");
  await first.ended;
});

it("[CL21] the next command runs the set-up after one that was killed during it", async () => {
  const cwd = repo("killed", { setup: ["touch begun; test -e go || sleep 50", "touch done"] });
  const first = user.start(["start", "--wait"], { cwd });
  const id = await waitForSetup("killed");
  first.child.kill("SIGKILL");
  await first.ended;
  await until("its lease is free", async () => {
    const lease = await server.call("GET", `/v1/sandboxes/${id}/lease`);
    return lease.body.state === "free";
  });
  await server.exec(id, "touch go");
  expect((await user.startSandbox(cwd)).id).toBe(id);
  expect(await output(id, "ls done")).toBe("done\n");
});
