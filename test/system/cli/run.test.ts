/** Tests `berth run` and `berth kill`: what runs under a name, when it is ready, and what is left of it. */
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { isListening } from "../../../src/cli/run/start-background.ts";
import type { Process } from "../../../src/protocol/process.ts";
import { until } from "../../until.ts";
import { useCliUser } from "./cli-user.ts";

const serverAt = (port: number) => ["python3", "-m", "http.server", String(port)];

type RunDocument = {
  sandbox: string;
  process: Process;
  replaced: string | null;
  readyMs: number;
  sync: { sentBytes: number } | null;
};

const { user, sandboxOf } = await useCliUser();
const repo = user.repo("app");
const sandbox = await sandboxOf(repo);

beforeEach(async () => {
  for (const { id } of await running()) await sandbox.process(id).delete();
});

const berth = (...args: string[]) => user.berth(args, { cwd: repo });
const output = (...args: string[]) => user.output(args, { cwd: repo });
const message = (...args: string[]) => user.failure(args, { cwd: repo });
/** The document printed with `--json`, an option that comes before the command. */
async function json<Document = RunDocument>([verb = "", ...args]: string[], code = 0, cwd = repo) {
  const ran = await user.berth([verb, "--json", ...args], { cwd });
  expect(ran.code, `${ran.stdout}${ran.stderr}`).toBe(code);
  return JSON.parse(ran.stdout) as Document;
}
const failure = async (args: string[]) => (await json<{ error: object }>(args, 1)).error;
const running = async () => await sandbox.processes.list({ state: "running" });
const isFree = async () => {
  const { state, waiterCount } = await sandbox.lease.get();
  expect({ state, waiterCount }).toEqual({ state: "free", waiterCount: 0 });
};

it("[CL28] sends the checkout, starts the process under its name, and releases the lease", async () => {
  user.write(repo, "greeting.txt", "hello\n");
  const ran = await berth("run", "web", "--", "sh", "-c", "cat greeting.txt; sleep 600");
  const all = await running();
  const argv = ["sh", "-c", "cat greeting.txt; sleep 600"];
  expect([...all]).toEqual([expect.objectContaining({ name: "web", argv })]);
  const [process] = all;
  expect(ran).toMatchObject({ code: 0, stdout: `web is running: process ${process?.id}\n` });
  expect(ran.stderr).toBe("Follow it with `berth logs web -f`, end it with `berth kill web`.\n");
  await isFree();
  expect((await berth("logs", "web")).stdout).toBe("hello\n");
  const table = (await berth("ps")).stdout;
  expect(table).toMatch(/^PROCESS +NAME +STATE +AGE +COMMAND$/m);
  expect(table).toMatch(new RegExp(`^${process?.id} +web +running +\\d+s +sh -c`, "m"));
});

it("[CL28] replaces the process of that name and no other", async () => {
  const first = await json(["run", "web", "--", "sleep", "600"]);
  const other = await json(["run", "db", "--", "sleep", "600"]);
  const second = await json(["run", "web", "--", "sh", "-c", "sleep 600"]);
  expect(second).toMatchObject({
    ...{ sandbox: sandbox.id, replaced: first.process.id, sync: { sentBytes: 0 } },
    process: { name: "web", state: "running" },
  });
  expect(first.replaced).toBeNull();
  expect(new Set((await running()).map(({ id }) => id))).toEqual(
    new Set([other.process.id, second.process.id]),
  );
  expect((await sandbox.process(first.process.id).get()).state).toBe("exited");
});

it("[CL28] is ready when it listens, not before", async () => {
  const late = ["sh", "-c", `sleep 1; exec ${serverAt(3100).join(" ")}`];
  const { process, readyMs } = await json(["run", "web", "--port", "3100", "--", ...late]);
  expect(readyMs).toBeGreaterThan(1000);
  expect(process.state).toBe("running");
  const { met } = await sandbox.process(process.id).wait({ for: "port:3100", timeoutMs: 5000 });
  expect(met).toBe(true);
  const second = await json(["run", "web", "-p", "3100", "--", ...serverAt(3100)]);
  expect(second.replaced).toBe(process.id);
  await isFree();
});

it("[CL28] is ready when it has written the text of --log", async () => {
  const command = "echo begun; sleep 1; echo 'now [1] ready' >&2; sleep 600";
  const document = await json(["run", "job", "--log", "[1] ready", "--", "sh", "-c", command]);
  expect(document.readyMs).toBeGreaterThan(1000);
  expect((await berth("logs", "job")).stderr).toBe("now [1] ready\n");
});

it("[CL28] uses the lease of `berth lock`, runs longer than that, and in the sandbox of --id", async () => {
  const berthHere = `${process.execPath} ${join(root, "src/cli/main.ts")}`;
  const script = `${berthHere} run web -- sleep 600; ${berthHere} kill web; ${berthHere} run web -- sleep 601`;
  const ran = await berth("lock", "--wait", "60", "--", "sh", "-c", script);
  expect(ran).toMatchObject({ code: 0, signal: null });
  expect(await running()).toMatchObject([{ name: "web", argv: ["sleep", "601"] }]);
  await until("it is free", async () => (await sandbox.lease.get()).state === "free");
  const result = await berth("run", "db", "--id", sandbox.id, "--", "sleep", "600");
  const nameArgs = `db --id ${sandbox.id}`;
  expect(result.stderr).toBe(
    `Follow it with \`berth logs ${nameArgs} -f\`, end it with \`berth kill ${nameArgs}\`.\n`,
  );
  expect((await running())[0]).toMatchObject({ name: "db", cwd: "/workspace" });
});

it("[CL29] fails with the end of the log if the process exits before it is ready", async () => {
  const command = "seq 1 50; echo why >&2; exit 3";
  for (const options of [[], ["--port", "3101"], ["--log", "never"]]) {
    const printed = await message("run", "bad", ...options, "--", "sh", "-c", command);
    const lines = printed.trimEnd().split("\n");
    expect(lines.slice(0, 3)).toEqual(["32", "33", "34"]);
    expect(lines.slice(-3)).toEqual([
      "why",
      "error: bad exited with 3 before it was ready.",
      "hint: Run `berth logs bad` to see its log.",
    ]);
    await isFree();
  }
  const call = ["run", "bad", "--", "sh", "-c", "kill -9 $$"];
  const killed = { code: "exited_early", signal: "SIGKILL", exitCode: null };
  expect(await failure(call)).toMatchObject(killed);
  expect(await running()).toEqual([]);
});

it("[CL29] fails if the process is not ready in time, and the process continues", async () => {
  const call = ["run", "slow", "--port", "3102", "--timeout", "1", "--"];
  expect(await message(...call, "sh", "-c", "echo waiting; sleep 600")).toBe(
    "waiting\nerror: slow is running but was not ready within 1 s: waited until it listens on port 3102.\n" +
      "hint: Follow it with `berth logs slow -f`, end it with `berth kill slow`, or wait longer with `--timeout`.\n",
  );
  expect(await running()).toMatchObject([{ name: "slow" }]);
  await isFree();
  const error = await failure([...call, "sleep", "600"]);
  expect(error).toMatchObject({ code: "not_ready", name: "slow", output: "" });
});

it("[CL29] releases the lease at Ctrl-C, and the process continues", async () => {
  const args = ["run", "web", "--port", "3103", "--", "sleep", "600"];
  const started = user.start(args, { cwd: repo });
  await until("it is waited for", async () => (await running()).length === 1);
  expect((await sandbox.lease.get()).state).toBe("held");
  started.child.kill("SIGINT");
  expect(await started.ended).toMatchObject({
    ...{ code: 130, stdout: "" },
    stderr: "web is still running. End it with `berth kill web`.\n",
  });
  await isFree();
  expect(await running()).toMatchObject([{ name: "web", state: "running" }]);
});

it("[CL30] repeats the last command, in its folder, on the current files", async () => {
  user.write(repo, "deep/word.txt", "one\n");
  const command = "cat word.txt; sleep 600";
  const first = await json(["run", "web", "--", "sh", "-c", command], 0, `${repo}/deep`);
  expect(first.process.cwd).toBe("/workspace/deep");
  user.write(repo, "deep/word.txt", "two\n");
  const repeated = await json(["run", "web", "--log", "two"]);
  expect(repeated).toMatchObject({
    replaced: first.process.id,
    process: { argv: ["sh", "-c", command], cwd: "/workspace/deep", name: "web" },
  });
  expect((await berth("kill", "web")).code).toBe(0);
  // Repeats one that has ended too.
  const third = await json(["run", "web", "--env", "A=1"]);
  expect(third).toMatchObject({ replaced: null, process: { argv: ["sh", "-c", command] } });
  expect((await berth("logs", "web")).stdout).toBe("two\n");
  // A command that could not start is not the last one.
  expect((await berth("run", "web", "--", "no-such-program")).code).toBe(1);
  const fourth = await json(["run", "web"]);
  expect(fourth).toMatchObject({
    replaced: third.process.id,
    process: { argv: ["sh", "-c", command] },
  });
  expect((await berth("logs", "web")).stdout).toBe("two\n");
});

it("[CL30] says that there is nothing to repeat, and creates no sandbox", async () => {
  expect(await message("run", "never")).toBe(
    "error: There is no process `never` to run again.\n" +
      "hint: Run `berth run never -- <command>`.\n",
  );
  const elsewhere = user.repo("other");
  const document = await user.json(["run", "web"], { cwd: elsewhere, code: 1 });
  expect(document).toMatchObject({ error: { code: "no_sandbox" } });
  const { sandboxes } = await user.json<{ sandboxes: unknown[] }>(["list"], { cwd: elsewhere });
  expect(sandboxes).toEqual([]);
});

it("[CL31] kill ends a process with everything it started, by name or id, and can be repeated", async () => {
  const tree = "(setsid sleep 666 &); sleep 666 & wait";
  const { process } = await json(["run", "web", "--", "sh", "-c", tree]);
  const { id } = process;
  expect(await output("kill", "web")).toBe(`web (${id}) has ended: SIGTERM\n`);
  const left = await sandbox.exec({ command: "ps -ef | grep -c '[s]leep 666'" });
  expect(left.stdout).toBe("0\n");
  expect((await berth("kill", "web")).stdout).toBe(`web (${id}) had already ended: SIGTERM\n`);
  const document = await json<{ hadEnded: boolean; process: Process }>(["kill", id]);
  expect(document).toMatchObject({ hadEnded: true, process: { id, signal: "SIGTERM" } });
  // Its record and log stay.
  expect((await berth("ps", "--all")).stdout).toContain(id);
  const other = await json(["run", "web", "--", "sleep", "600"]);
  expect(await json(["kill", other.process.id])).toMatchObject({ hadEnded: false });
  expect(await running()).toEqual([]);
  await isFree();
});

it("[CL31] kill reports a missing process, and waits for the holder of the lease", async () => {
  expect(await failure(["kill", "nobody"])).toMatchObject({ code: "no_process" });
  const stale = await failure(["kill", "paaaaaaaaaaaa-bbbbbbbb"]);
  expect(stale).toMatchObject({ code: "stale_handle" });
  await json(["run", "web", "--", "sleep", "600"]);
  await using lease = await sandbox.lease.hold({ holder: "somebody" });
  const refused = await failure(["kill", "web", "--wait", "0"]);
  expect(refused).toMatchObject({ code: "lease_wait_timeout" });
  expect(await running()).toHaveLength(1);
  await lease.release();
});

it("[CL31] kill by name ends the running process, even if one that could not start is newer", async () => {
  const { process } = await json(["run", "web", "--", "sleep", "600"]);
  expect((await berth("run", "web", "--", "no-such-program")).code).toBe(1);
  expect(await output("kill", "web")).toBe(`web (${process.id}) has ended: SIGTERM\n`);
  expect(await running()).toEqual([]);
});

it("[CL31] kill by name ends the process that has the name once the lease is granted", async () => {
  await json(["run", "web", "--", "sleep", "600"]);
  await using lease = await sandbox.lease.hold({ holder: "somebody" });
  const ending = berth("kill", "web");
  await until("it waits", async () => (await sandbox.lease.get()).waiterCount === 1);
  const { id } = await sandbox.processes.start(
    { name: "web", argv: ["sleep", "601"], ifRunning: "replace" },
    { lease: lease.token },
  );
  await lease.release();
  expect(await ending).toMatchObject({ code: 0, stdout: `web (${id}) has ended: SIGTERM\n` });
  expect(await running()).toEqual([]);
});

it("[CL32] reports wrong usage before anything is created", async () => {
  const empty = user.repo("empty");
  const wrong: [args: string[], message: string][] = [
    [["run", "a b", "--", "true"], "'a b' is not a valid name of a process"],
    [["run", "../x", "--", "true"], "'../x' is not a valid name of a process"],
    [["run", "", "--", "true"], "'' is not a valid name of a process"],
    [["run", "x".repeat(65), "--", "true"], "is not a valid name of a process"],
    [["run", "paaaaaaaaaaaa-bbbbbbbb", "--", "true"], "it looks like an id"],
    [["run", "web", "--port", "0", "--", "true"], "`--port` must be"],
    [["run", "web", "--log", "", "--", "true"], "`--log` must have"],
    [["run", "web", "--timeout", "0", "--", "true"], "`--timeout` must be"],
    [["run", "web", "--env", "1=2", "--", "true"], "`--env`: '1' is not"],
    [["run", "web", "--id", "short", "--", "true"], "`--id`: 'short' is not"],
    [["run"], "Missing required argument 'name'"],
    [["kill"], "Missing required argument 'process'"],
    [["kill", "a b"], "'a b' is not a valid name of a process"],
  ];
  for (const [args, message] of wrong) {
    const ran = await user.failure(args, { cwd: empty });
    expect(ran).toContain(message);
  }
  const { sandboxes } = await user.json<{ sandboxes: unknown[] }>(["list"], { cwd: empty });
  expect(sandboxes).toEqual([]);
});

it("[CL32] a missing program is reported and leaves the running process alone", async () => {
  const { process } = await json(["run", "web", "--", "sleep", "600"]);
  expect(await message("run", "web", "--", "no-such-program")).toBe(
    "no-such-program: not found\nerror: web exited with 127 before it was ready.\n" +
      `hint: The previous process continues: ${process.id}.\n`,
  );
  expect(await running()).toMatchObject([{ id: process.id, pid: process.pid }]);
  const nowhere = await failure(["run", "web", "--cwd", "/nowhere", "--", "true"]);
  expect(nowhere).toMatchObject({ code: "bad_cwd" });
  expect(await running()).toMatchObject([{ id: process.id }]);
  await isFree();
});

it("[CL32] starts nothing if something else already listens on the port", async () => {
  await json(["run", "web", "--port", "3104", "--", ...serverAt(3104)]);
  const refused = await failure(["run", "other", "--port", "3104", "--", ...serverAt(3104)]);
  expect(refused).toMatchObject({ code: "port_taken", port: 3104 });
  expect(await sandbox.processes.list({ name: "other" })).toHaveLength(0);
  // The process that is replaced frees its own port.
  const repeated = await json(["run", "web", "--port", "3104"]);
  expect(repeated.process).toMatchObject({ name: "web" });
  await isFree();
});

it("[CL32] reads from the kernel's tables which ports are in use", () => {
  const line = (local: string, state: string) =>
    `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  0  0 1 1 0`;
  const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt";
  const tables = [head, line("0100007F:0BB8", "0A"), line("0100007F:0BB9", "01"), ""].join("\n");
  expect([3000, 3001, 8].map((port) => isListening(tables, port))).toEqual([true, false, false]);
  const six = `${head}\n${line("00000000000000000000000001000000:0BB8", "0A")}`;
  expect([3000, 1].map((port) => isListening(six, port))).toEqual([true, false]);
  expect(isListening("", 3000)).toBe(false);
});

it("[CL33] a log can be followed while others run commands", async () => {
  await json(["run", "web", "--", "sh", "-c", "echo one; read line; echo never"]);
  const following = user.start(["logs", "web", "-f"], { cwd: repo });
  await until("it is followed", () => following.printed.stdout === "one\n");
  const meanwhile = await berth("exec", "--", "echo", "meanwhile");
  expect(meanwhile).toMatchObject({ code: 0, stdout: "meanwhile\n" });
  expect(following.child.exitCode).toBeNull();
  expect((await berth("kill", "web")).code).toBe(0);
  expect(await following.ended).toMatchObject({ code: 0, stdout: "one\n" });
});
