import { describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { Asker, outputOf } from "./processes.ts";

const MiB = 1024 * 1024;

describe.each(kinds)("a process that keeps what it leaves, its tree held by %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  const ask = new Asker(agent);

  test("[P50] exits when its output is closed, and what it left runs on until the container stops", async () => {
    const { id } = await ask.sh(
      "(exec sleep 1000 > /dev/null 2>&1) & echo $!; (sleep 0.2; echo late) &",
      { leftovers: "keep" },
    );
    const ended = await ask.exited(id);
    expect(ended).toMatchObject({ exitCode: 0, leftovers: 0 });
    const [pid = "", late] = outputOf(await ask.events(id))
      .toString()
      .split("\n");
    expect(late).toBe("late");
    expect(agent.left()).toContain(Number(pid));
    expect((await agent.sh(`kill ${pid}`)).exitCode).toBe(0);
    await until("its group is empty", () => !agent.left().includes(Number(pid)));
  });

  test("[P50] is ended with all of its tree by DELETE and by its timeout", async () => {
    const { id } = await ask.sh("sleep 1000 & echo up; wait", { leftovers: "keep" });
    await ask.wait(id, { for: "log:up" });
    await ask.end(id);
    const slow = await ask.sh("sleep 1000 & echo up", { leftovers: "keep", timeoutMs: 500 });
    expect(await ask.exited(slow.id)).toMatchObject({ timedOut: true });
    expect(agent.left()).toEqual([]);
  });

  test("[P51] a signal to the process alone leaves its descendants running", async () => {
    const { id } = await ask.sh("(exec sleep 1000 >/dev/null 2>&1) & echo $!; wait", {
      leftovers: "keep",
    });
    await ask.wait(id, { for: "log:\n" });
    await ask.signal(id, "SIGKILL", "process");
    expect(await ask.exited(id)).toMatchObject({ signal: "SIGKILL" });
    const pid = outputOf(await ask.events(id))
      .toString()
      .trim();
    expect((await agent.sh(`kill ${pid}`)).exitCode).toBe(0);
  });

  test("[P52] without standard input it reads the end at once", async () => {
    const { id, pid } = await ask.sh("cat; echo read", { stdin: "none" });
    expect(await ask.exited(id)).toMatchObject({ exitCode: 0, stdin: { offset: 0, ended: true } });
    expect(outputOf(await ask.events(id)).toString()).toBe("read\n");
    expect((await ask.list({ pid: pid ?? 0 })).map((listed) => listed.id)).toEqual([id]);
    expect(await ask.list({ pid: 4_000_000 })).toEqual([]);
  });

  test("[P53] with `hold` nothing is lost while a reader is connected, however slow it is", async () => {
    const { id } = await ask.sh(`head -c ${8 * MiB} /dev/zero`, {
      onFull: "hold",
      logBytesMax: MiB,
    });
    const response = await agent.request(`/v1/processes/${id}/logs?follow=1&stream=stdout`, {
      headers: { accept: "application/octet-stream" },
    });
    await until("it waits", async () => (await ask.get(id)).log.end >= MiB);
    expect((await ask.get(id)).state).toBe("running");
    expect((await response.arrayBuffer()).byteLength).toBe(8 * MiB);
  });

  test("[P54] with `endsWithReader` it ends when the last reader leaves before the end, not when one of two does", async () => {
    const { id } = await ask.sh("echo up; exec sleep 1000", { endsWithReader: true });
    const readers = await Promise.all(
      [1, 2].map(() => agent.request(`/v1/processes/${id}/logs?follow=1`)),
    );
    await readers[0]?.body?.cancel();
    expect((await ask.wait(id, { for: "log:up" })).process.state).toBe("running");
    await readers[1]?.body?.cancel();
    expect(await ask.exited(id)).toMatchObject({ signal: "SIGTERM" });
  });

  test("[P53] with `hold` the process runs on once its last reader has left", async () => {
    const { id } = await ask.sh(`head -c ${8 * MiB} /dev/zero`, {
      onFull: "hold",
      logBytesMax: MiB,
    });
    const response = await agent.request(`/v1/processes/${id}/logs?follow=1&stream=stdout`, {
      headers: { accept: "application/octet-stream" },
    });
    await response.body?.cancel();
    expect(await ask.exited(id)).toMatchObject({ exitCode: 0, log: { end: 8 * MiB } });
  });
});
