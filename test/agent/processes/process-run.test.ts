import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { processSchema } from "../../../src/protocol/process.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { Asker, newId, outputOf, refusalOf } from "./processes.ts";

describe.each(kinds)("a process, its tree held by %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  const ask = new Asker(agent);

  test("[P1] a process continues after the response to its call, and its record says how it ended", async () => {
    const begun = await ask.start({
      argv: ["sh", "-c", "read line; echo out; echo err >&2; exit 7"],
      cwd: agent.workspace,
    });
    expect(processSchema.parse(begun)).toEqual(begun);
    expect(begun).toMatchObject({ state: "running", incarnation: agent.incarnation });
    expect(agent.left()).toContain(begun.pid);
    await ask.written(begun.id, "go\n");
    const ended = await ask.exited(begun.id);
    expect(processSchema.parse(ended)).toEqual(ended);
    expect(ended).toMatchObject({
      ...{ state: "exited", exitCode: 7, signal: null, timedOut: false, leftovers: 0 },
      ...{ pid: begun.pid, startedAt: begun.startedAt, cwd: agent.workspace },
      log: { start: 0, end: 8, stdoutBytes: 4, stderrBytes: 4, onFull: "drop" },
    });
    expect(await ask.get(begun.id)).toEqual(ended);
    const events = await ask.events(begun.id);
    expect(outputOf(events, "stdout").toString()).toBe("out\n");
    expect(outputOf(events, "stderr").toString()).toBe("err\n");
    expect(events.at(-1)).toMatchObject({ event: "exit", data: { exitCode: 7, signal: null } });
  });

  test("[P2] a start that is repeated with its id joins the process and runs nothing again", async () => {
    const id = newId();
    const call = { id, command: "echo once >> count; sleep 1000" };
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask.post(call)));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201]);
    const pids = await Promise.all(
      answers.map(async (other) => (await other.json()).pid as number),
    );
    expect(new Set(pids).size).toBe(1);
    await until("it wrote", async () => (await agent.sh("cat count")).stdout !== "");
    await ask.end(id);
    // Also after the exit.
    expect((await ask.post(call)).status).toBe(200);
    expect((await agent.sh("cat count")).stdout).toBe("once\n");
    // Also after its record was removed.
    await ask.end(id);
    expect(await refusalOf(await ask.post(call))).toMatchObject({ code: "result_gone" });
    expect((await agent.sh("cat count")).stdout).toBe("once\n");
  });

  test("[P3] a missing folder is bad_cwd, and nothing was run", async () => {
    const before = (await ask.list()).length;
    const refused = await ask.post({ command: "touch ran", cwd: "/nowhere" });
    expect(await refusalOf(refused)).toMatchObject({ code: "bad_cwd", field: "cwd", status: 400 });
    expect((await ask.list()).length).toBe(before);
    expect((await agent.sh("ls ran")).exitCode).not.toBe(0);
  });

  test("[P3] a program that cannot run is a process that exited with the code that a shell would return", async () => {
    await agent.sh("echo text > plain; chmod 644 plain; printf '\\177ELF' > bad; chmod 755 bad");
    const cases = [
      { argv: ["no-such-program"], exitCode: 127, line: "no-such-program: not found\n" },
      { argv: ["./plain"], exitCode: 126, line: "./plain: permission denied\n" },
    ];
    for (const { argv, exitCode, line } of cases) {
      const { id, pid, state } = await ask.start({ argv });
      expect({ pid, state }).toEqual({ pid: null, state: "exited" });
      expect(await ask.exited(id)).toMatchObject({ exitCode, signal: null, leftovers: 0 });
      expect(outputOf(await ask.events(id), "stderr").toString()).toBe(line);
    }
    const late = await ask.start({ argv: ["./bad"] });
    expect(await ask.exited(late.id)).toMatchObject({ exitCode: 126, pid: null });
  });

  test("[L5] a time limit ends the whole tree, keeps what was written, and says so", async () => {
    const { id } = await ask.sh(
      `for i in 1 2 3; do setsid sh -c 'trap "" TERM; while :; do sleep 1000; done' & done
       trap '' TERM; echo before; while :; do sleep 1000; done`,
      { timeoutMs: 3000 },
    );
    expect(agent.left().length).toBeGreaterThan(0);
    const ended = await ask.exited(id);
    expect(ended).toMatchObject({ timedOut: true, exitCode: null, signal: "SIGKILL" });
    expect(ended.leftovers).toBeGreaterThanOrEqual(3);
    expect(outputOf(await ask.events(id)).toString()).toBe("before\n");
    expect(agent.left()).toEqual([]);
  });

  test("[P4] DELETE ends the whole tree, including children that left their session, and returns how", async () => {
    const { id } = await ask.sh(
      `for i in 1 2 3; do setsid sh -c 'trap "" TERM; echo up; sleep 1000; sleep 1000' & done; wait`,
    );
    expect((await ask.wait(id, { for: "log:up\nup\nup\n" })).met).toBe(true);
    await until("all have begun", () => agent.left().length >= 7);
    const ended = await ask.end(id);
    expect(ended).toMatchObject({ state: "exited", signal: "SIGTERM", exitCode: null });
    expect(ended.leftovers).toBeGreaterThanOrEqual(3);
    expect(agent.left()).toEqual([]);
    // A second DELETE removes the record.
    expect(await ask.end(id)).toEqual(ended);
    const removed = await agent.request(`/v1/processes/${id}`);
    expect(await refusalOf(removed)).toMatchObject({ code: "not_found", status: 404 });
  });

  test("[P4] a process that is stopped is ended too, by TERM", async () => {
    const { id } = await ask.sh("trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done");
    await ask.wait(id, { for: "log:up" });
    await ask.signal(id, "SIGSTOP");
    expect(await ask.end(id)).toMatchObject({ exitCode: 5 });
  });

  test("[P5] a signal reaches every process of the tree, and does nothing after the exit", async () => {
    const { id } = await ask.sh(
      `for i in 1 2 3; do setsid sh -c 'trap "echo got" USR1; echo up; while :; do sleep 0.02; done' & done
       trap 'echo got' USR1; echo up; while :; do sleep 0.02; done`,
    );
    await until(
      "all are up",
      async () => (await ask.bytes(id, "stdout")).toString().split("up").length === 5,
    );
    expect(await ask.signal(id, "SIGUSR1")).toMatchObject({ state: "running" });
    await until(
      "all got it",
      async () => (await ask.bytes(id, "stdout")).toString().split("got").length === 5,
    );
    await ask.signal(id, "SIGKILL");
    const ended = await ask.exited(id);
    expect(ended).toMatchObject({ signal: "SIGKILL", exitCode: null });
    expect(await ask.signal(id)).toEqual(ended);
    expect(agent.left()).toEqual([]);
  });

  test("[P25] a signal for a tree that has ended reaches no command that started since", async () => {
    const ended = await ask.sh("read line");
    // A process of another command has its pipe open, so it still runs although its tree is gone.
    const holder = await ask.sh(
      `exec 3> /proc/${ended.pid}/fd/1; echo open; while :; do echo more >&3; sleep 0.01; done`,
    );
    await ask.wait(holder.id, { for: "log:open" });
    await ask.written(ended.id, "", { eof: 1 });
    await until("its first process is gone", () => !existsSync(`/proc/${ended.pid}`));
    const later: Promise<{ exitCode: number | null; signal: string | null }>[] = [];
    const begun = performance.now();
    await until("others have begun meanwhile, one after the other", () => {
      const due = (performance.now() - begun) / 100 > later.length;
      if (due) later.push(agent.sh("until [ -e go ]; do sleep 0.1; done; exit 7"));
      return later.length === 10;
    });
    expect(await ask.signal(ended.id, "SIGKILL")).toMatchObject({ state: "running" });
    await ask.exited(ended.id);
    await ask.end(holder.id);
    await agent.sh("touch go");
    for (const next of await Promise.all(later)) {
      expect(next).toMatchObject({ exitCode: 7, signal: null });
    }
  });

  test("[P6] what the first process leaves behind is ended with it and counted", async () => {
    const { id } = await ask.sh("(setsid sleep 1000 &); sleep 1000 & echo hi");
    expect(await ask.exited(id)).toMatchObject({ exitCode: 0, leftovers: 2, timedOut: false });
    expect(outputOf(await ask.events(id)).toString()).toBe("hi\n");
    expect(agent.left()).toEqual([]);
  });

  test("[P7] the list is newest first, and can be filtered by state", async () => {
    const first = await ask.sh("sleep 1000");
    const second = await ask.sh("true");
    await ask.exited(second.id);
    const ids = (await ask.list()).map(({ id }) => id);
    expect(ids.slice(0, 2)).toEqual([second.id, first.id]);
    expect((await ask.list({ state: "running" })).map(({ id }) => id)).toEqual([first.id]);
    expect((await ask.list({ state: "exited" })).map(({ id }) => id)).not.toContain(first.id);
    expect(await ask.list({ session: "none" })).toEqual([]);
    await ask.end(first.id);
  });
});
