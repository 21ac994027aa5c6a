import { expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import type { Process } from "../../../src/protocol/process.ts";
import { until } from "../../until.ts";
import { useCliUser } from "./cli-user.ts";

const { server, user } = await useCliUser();
const id = await server.create();

const run = async (command: string) =>
  (await server.call("POST", `/v1/sandboxes/${id}/processes`, { command }))
    .body as unknown as Process;
const ended = async (process: string) =>
  await server.call("GET", `/v1/sandboxes/${id}/processes/${process}/wait`);
const berth = async (...args: string[]) => await user.berth([...args, "--id", id]);

it("[CL23] ps shows running processes, and with --all how others ended", async () => {
  const none = { code: 0, stdout: "", stderr: "No processes.\n" };
  expect(await berth("ps")).toMatchObject(none);
  const over = await run("exit 3");
  await ended(over.id);
  const running = await run("sleep 60");
  const table = await berth("ps");
  expect(table.stderr).toBe("");
  expect(table.stdout).toMatch(
    new RegExp(
      `^PROCESS {${running.id.length - 5}}NAME  STATE    AGE  COMMAND\n${running.id}  -     running  \\d+s +sleep 60\n$`,
    ),
  );
  const all = await berth("ps", "--all");
  expect(all.stdout).toMatch(new RegExp(`^${over.id} +- +exited 3 +\\d+s +exit 3$`, "m"));
  expect(await user.json(["ps", "--id", id])).toMatchObject({
    processes: [{ id: running.id, state: "running" }],
  });
  await server.call("DELETE", `/v1/sandboxes/${id}/processes/${running.id}`);
});

it("[CL23] logs prints both streams separately, by default of the newest process", async () => {
  const older = await run("echo older");
  await ended(older.id);
  const newer = await run("echo out; echo err >&2; printf 'no end'");
  await ended(newer.id);
  const printed = { code: 0, signal: null };
  expect(await berth("logs")).toEqual({ ...printed, stdout: "out\nno end", stderr: "err\n" });
  expect(await berth("logs", older.id)).toEqual({ ...printed, stdout: "older\n", stderr: "" });
  expect(await berth("logs", newer.id, "--stream", "stderr")).toEqual({
    ...{ ...printed, stdout: "" },
    stderr: "err\n",
  });
  const asJson = await berth("logs", newer.id, "--json");
  const lines = asJson.stdout.trimEnd().split("\n");
  const documents = lines.map((line) => JSON.parse(line));
  expect(documents.filter(({ stream }) => stream === "stderr")).toEqual([
    { type: "output", stream: "stderr", data: Buffer.from("err\n").toString("base64") },
  ]);
});

it("[CL23] logs ends with the current log; with --follow when the process ends", async () => {
  const { id: process } = await run("echo one; read line; echo two $line");
  await until("it has written", async () => (await berth("logs", process)).stdout === "one\n");
  const following = user.start(["logs", process, "-f", "--id", id]);
  await until("it is followed", () => following.printed.stdout === "one\n");
  const sandbox = connect(server).sandbox(id);
  await sandbox.process(process).write(Buffer.from("in\n"), { offset: 0, eof: true });
  const printed = { code: 0, stdout: "one\ntwo in\n", stderr: "" };
  expect(await following.ended).toMatchObject(printed);
});

it("[CL23] logs of one stream ends with the current log, even if the other stream wrote last", async () => {
  const { id: process } = await run("echo out; echo err >&2; echo more >&2; read line");
  await until("it has written", async () => (await berth("logs", process)).stderr.length > 8);
  const printed = { code: 0, signal: null, stderr: "" };
  const log = await berth("logs", process, "--stream", "stdout");
  expect(log).toEqual({ ...printed, stdout: "out\n" });
  await server.call("DELETE", `/v1/sandboxes/${id}/processes/${process}`);
});

it("[CL23] open prints an address that leads to the port, and a new one ends the old", async () => {
  await run("cd /tmp && echo page > index.html && python3 -m http.server 3000");
  const first = (await berth("open", "3000", "--path")).stdout.trim();
  await until("it serves", async () => (await fetch(`${first}index.html`)).status === 200);
  expect(await (await fetch(`${first}index.html`)).text()).toBe("page\n");
  const document = await user.json(["open", "3000", "--id", id]);
  expect(document).toMatchObject({ ports: [{ port: 3000 }] });
  expect((await fetch(`${first}index.html`)).status).toBe(404);
  for (const port of ["port", "70000"]) {
    // Says so before it looks for a sandbox.
    const message = await user.failure(["open", port], { cwd: user.home });
    expect(message).toBe(`error: \`port\` must be a number from 1 to 65535, not '${port}'.\n`);
  }
});
