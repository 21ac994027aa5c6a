import { evictDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, keys, pathOf, stubOf } from "../calls.ts";
import { containerOf } from "../container.ts";
import { restBerth } from "../rest.ts";
import { overRpc } from "../world.ts";

const ask = (method: string, id: string, tail: string, body?: unknown) =>
  call(method, pathOf(id, tail), { body });
const start = (id: string, body: Record<string, unknown>) =>
  json(ask("POST", id, "/processes", body));

/** The reads that change nothing, with an id where one is needed. */
const lists = ["/processes", "/sessions", "/terminals"];
const looks = (thing: string) => [
  ["GET", `/processes/${thing}`],
  ["GET", `/processes/${thing}/logs`],
  ["GET", `/processes/${thing}/wait`],
  ["GET", `/sessions/${thing}`],
  ["GET", `/terminals/${thing}`],
  ["GET", `/terminals/${thing}/screen`],
  ["DELETE", `/terminals/${thing}`],
];
const changes = (thing: string): [string, string, unknown?][] => [
  ["POST", `/processes/${thing}/stdin`],
  ["POST", `/processes/${thing}/signal`, {}],
  ["DELETE", `/processes/${thing}`],
  ["POST", `/sessions/${thing}/exec`, { command: "true" }],
  ["POST", `/sessions/${thing}/processes`, { command: "true" }],
  ["DELETE", `/sessions/${thing}`],
];

async function paused(id: string): Promise<void> {
  expect(await json(ask("POST", id, "/pause"))).toMatchObject({ state: "paused" });
}

describe("reading what runs", () => {
  it("[L16] [U1] finds nothing in a paused sandbox, and starts no container", async () => {
    const id = await createSandbox();
    expect(await start(id, { command: "sleep 60" })).toMatchObject({ state: "running" });
    await paused(id);
    const before = await api.facts(id);
    expect(before).toMatchObject({ alive: false });
    for (const list of lists) {
      const noun = list.slice(1);
      expect(await json(ask("GET", id, list))).toEqual({ [noun]: [], nextCursor: null });
    }
    for (const [method = "", tail = ""] of looks("nobodys")) {
      const answer = await ask(method, id, tail);
      expect(answer.status, tail).toBe(404);
      expect(await json(answer)).toMatchObject({ error: { code: "not_found", id: "nobodys" } });
    }
    const resized = await ask("PATCH", id, "/terminals/nobodys", { cols: 80, rows: 24 });
    expect(resized.status).toBe(404);
    const upgrade = { upgrade: "websocket" };
    const connected = await call("GET", pathOf(id, "/terminals/nobodys/connect"), {
      headers: upgrade,
    });
    expect(connected.status).toBe(404);
    expect(await api.facts(id)).toEqual(before);
    expect(await api.get(id)).toMatchObject({ state: "paused" });
  });

  it("[U1] finds nothing after the container has exited unnoticed", async () => {
    const id = await createSandbox();
    const { id: process } = await start(id, { command: "sleep 60" });
    expect((await json(ask("GET", id, "/processes"))).processes).toHaveLength(1);
    await containerOf(id).exit();
    await evictDurableObject(stubOf(id));
    expect(await json(ask("GET", id, "/processes"))).toMatchObject({ processes: [] });
    expect(await json(ask("GET", id, `/processes/${process}`))).toMatchObject({
      error: { code: "stale_handle" },
    });
    expect((await api.facts(id)).starts).toHaveLength(1);
  });

  it("[U2] is refused with a handle of an earlier incarnation, without a request and without a start", async () => {
    const id = await createSandbox();
    const { id: process } = await start(id, { command: "sleep 60" });
    const { id: session } = await json(ask("POST", id, "/sessions", {}));
    const { id: terminal } = await json(ask("POST", id, "/terminals", {}));
    const all = (thing: string) => [...looks(thing), ...changes(thing)];
    const refused = async () => {
      for (const [method = "", tail = "", body] of [process, session, terminal].flatMap(all)) {
        const answer = await ask(String(method), id, String(tail), body);
        expect(answer.status, String(tail)).toBe(410);
        expect(await json(answer)).toMatchObject({ error: { code: "stale_handle" } });
      }
    };
    await paused(id);
    const before = await api.facts(id);
    await refused();
    expect(await api.facts(id)).toEqual(before);
    await json(ask("POST", id, "/start"));
    const after = await api.facts(id);
    expect(after.starts).toHaveLength(2);
    await refused();
    // The new agent got no request for anything of the old one.
    expect((await api.facts(id)).requests.filter((line) => line.includes("s"))).toEqual(
      after.requests.filter((line) => line.includes("s")),
    );
    for (const noun of ["sessions", "terminals"]) {
      const stale = noun === "sessions" ? session : terminal;
      const made = await ask("POST", id, `/${noun}`, { id: stale });
      expect(await json(made)).toMatchObject({ error: { code: "stale_handle" } });
    }
  });

  it("[U2] finds no chosen name after a restart, and starts nothing", async () => {
    const id = await createSandbox();
    expect(await json(ask("POST", id, "/sessions", { id: "mine" }))).toMatchObject({ id: "mine" });
    await paused(id);
    const before = await api.facts(id);
    for (const [method, tail, body] of changes("mine")) {
      expect((await ask(method, id, tail, body)).status, tail).toBe(404);
    }
    expect(await api.facts(id)).toEqual(before);
    // Creating it again starts the container.
    expect((await ask("POST", id, "/sessions", { id: "mine" })).status).toBe(201);
    expect((await api.facts(id)).starts).toHaveLength(2);
  });

  it("[U3] does not delay a lease while a reader waits or follows", async () => {
    const id = await createSandbox();
    const { id: process } = await start(id, { command: "sleep 60" });
    const waiting = ask("GET", id, `/processes/${process}/wait?timeoutMs=60000`);
    const following = await ask("GET", id, `/processes/${process}/logs?follow=1`);
    await eventually(async () =>
      expect((await api.facts(id)).requests).toContain(`GET /v1/processes/${process}/wait`),
    );
    const lease = await ask("POST", id, "/lease", { holder: "one" });
    expect(lease.status).toBe(201);
    const { token } = await json(lease);
    const ended = await call("DELETE", pathOf(id, `/processes/${process}`), {
      headers: api.leaseHeader(token),
    });
    expect(ended.status).toBe(200);
    expect(await json(waiting)).toMatchObject({ met: true });
    expect(await following.text()).toContain("event: exit");
  });
});

describe("using what runs", () => {
  it("[U4] starts in the sandbox's own folder by default", async () => {
    const id = await createSandbox({ cwd: "/tmp" });
    expect(await start(id, { command: "pwd" })).toMatchObject({ cwd: "/tmp" });
    expect(await start(id, { command: "pwd", cwd: "/usr" })).toMatchObject({ cwd: "/usr" });
    const session = await json(ask("POST", id, "/sessions", { id: "one" }));
    expect(session).toMatchObject({ cwd: "/tmp" });
    await json(ask("POST", id, "/sessions/one/exec", { command: "cd /etc" }));
    const inside = await json(ask("POST", id, "/sessions/one/processes", { command: "pwd" }));
    expect(inside).toMatchObject({ cwd: "/etc", sessionId: "one" });
  });

  it("[U5] accepts bytes for standard input unchanged, of a bounded size, and nothing else", async () => {
    const id = await createSandbox();
    const { id: process } = await start(id, { argv: ["cat"] });
    const bytes = Uint8Array.from({ length: 256 }, (_, n) => n);
    const write = (query: string, body: unknown, type?: string) =>
      call("POST", pathOf(id, `/processes/${process}/stdin${query}`), {
        body,
        headers: type === undefined ? {} : { "content-type": type },
      });
    const raw = "application/octet-stream";
    expect(await json(write("", bytes, raw))).toEqual({ offset: 256, ended: false });
    expect(await json(write("?offset=0", bytes, raw))).toEqual({ offset: 256, ended: false });
    expect((await write("", "{}", "application/json")).status).toBe(415);
    const huge = new Uint8Array(limits.processStdinBytesMax + 1);
    expect((await write("", huge, raw)).status).toBe(413);
    const gap = await write("?offset=300", bytes, raw);
    expect(gap.status).toBe(409);
    expect(await json(gap)).toMatchObject({ error: { code: "stdin_gap", offset: 256 } });
    const end = await call("POST", pathOf(id, `/processes/${process}/stdin?eof=1`));
    expect(await json(end)).toEqual({ offset: 256, ended: true });
    expect(await json(ask("GET", id, `/processes/${process}/wait`))).toMatchObject({ met: true });
    const logs = await call("GET", pathOf(id, `/processes/${process}/logs?stream=stdout`), {
      headers: { accept: raw },
    });
    expect(logs.headers.get("content-type")).toBe(raw);
    expect(logs.headers.get("berth-offset")).toBe("0");
    expect(new Uint8Array(await logs.arrayBuffer())).toEqual(bytes);
  });

  it("[U6] is interrupted when the container exits, and a stream of events says so", async () => {
    const id = await createSandbox();
    const { id: process } = await start(id, { command: "sleep 60" });
    await json(ask("POST", id, "/sessions", { id: "one" }));
    const running = ask("POST", id, "/sessions/one/exec", { command: "sleep 60" });
    const waiting = ask("GET", id, `/processes/${process}/wait?timeoutMs=60000`);
    const following = await ask("GET", id, `/processes/${process}/logs?follow=1`);
    expect(following.headers.get("content-type")).toBe("text/event-stream");
    await eventually(async () => expect((await api.facts(id)).running).toBe(1));
    await containerOf(id).exit();
    const answer = await running;
    expect(answer.status).toBe(502);
    expect(await json(answer)).toMatchObject({ error: { code: "operation_interrupted" } });
    expect(await json(waiting)).toMatchObject({ error: { code: "stale_handle" } });
    const text = await following.text();
    const error = /event: error\ndata: (.*)\n\n$/.exec(text)?.[1] ?? expect.fail(text);
    expect(JSON.parse(error)).toMatchObject({ code: "operation_interrupted" });
    expect(await api.get(id)).toMatchObject({ state: "failed" });
  });

  it("[U7] works the same over RPC and REST, and only the methods can be reached", async () => {
    const { id } = await overRpc.berth.create({ waitMs: 10_000 });
    const [methods, rest] = [overRpc.berth.sandbox(id), restBerth(keys.local).sandbox(id)];
    const process = await methods.startProcess({ command: "seq 3" });
    await methods.waitForProcess(process.id);
    expect(await rest.process(process.id)).toEqual(await methods.process(process.id));
    const read = async (api: typeof methods) => {
      const stream = await api.processLogs(process.id, { raw: true, stream: "stdout" });
      const chunks: Uint8Array[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      return new TextDecoder().decode(Uint8Array.from(chunks.flatMap((chunk) => [...chunk])));
    };
    expect(await read(methods)).toBe("1\n2\n3\n");
    expect(await read(rest)).toBe("1\n2\n3\n");
    const refusals = [
      () => methods.process("no such"),
      () => methods.process("nobodys"),
      () => methods.processLogs(process.id, { raw: true }),
      () => methods.processLogs("nobodys"),
      () => methods.execInSession("nobodys", { command: "true" }),
    ];
    const codes = await Promise.all(
      refusals.map((refuse) => refuse().catch((error: { code: string }) => error.code)),
    );
    expect(codes).toEqual(["bad_request", "not_found", "bad_request", "not_found", "not_found"]);
    const inside = methods as unknown as Record<string, () => Promise<unknown>>;
    await expect(inside.calling?.()).rejects.toThrow();
  });
});
