/** Keys that an administrator creates and removes while the server runs. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { rights } from "../../../src/protocol/rights.ts";
import { digestOf, forgetKeys } from "../../../src/worker/auth/keys.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, keys, pathOf, refusal, upgrade } from "../calls.ts";
import { FrameSocket } from "../frame-socket.ts";

const administrator = "berth_administrator_of_the_tests";
const admin = (method: string, path: string, body?: unknown) =>
  call(method, path, { key: administrator, ...(body === undefined ? {} : { body }) });

type Made = { id: string; key: string };

async function makeKey(name: string, more: Record<string, unknown> = {}): Promise<Made> {
  const made = await admin("POST", "/v1/keys", { name, tenant: "local", ...more });
  expect(made.status).toBe(201);
  return (await json(made)) as Made;
}

const listed = async () => (await json(admin("GET", "/v1/keys"))).keys as Record<string, unknown>[];

/** What the alarm does, whenever the platform rings it. */
const ring = () => runDurableObjectAlarm(env.KEYS.getByName("keys"));

describe("keys", () => {
  it("[KY1] a created key works at once with its rights, names the maker, and is never shown again", async () => {
    const { key, ...made } = await makeKey("alice", { rights: ["read", "exec"] });
    expect(made).toMatchObject({ name: "alice", tenant: "local", rights: ["read", "exec"] });
    const created = await json(call("POST", "/v1/sandboxes", { key, body: { start: false } }));
    expect(created.madeBy).toBe("alice");
    const mine = await json(call("GET", "/v1/sandboxes?mine=1", { key }));
    expect(mine.sandboxes.map(({ id }: { id: string }) => id)).toEqual([created.id]);
    expect(await refusal(call("DELETE", pathOf(created.id), { key }))).toEqual([403, "forbidden"]);
    const [entry] = (await listed()).filter(({ name }) => name === "alice");
    expect(entry).toMatchObject({ ...made, source: "api", lastUsedAt: expect.any(String) });
    expect(JSON.stringify(await listed())).not.toContain(key);
    expect(await refusal(admin("POST", "/v1/keys", { name: "alice", tenant: "local" }))).toEqual([
      409,
      "name_taken",
    ]);
  });

  it("[KY2] only an administrator's key manages keys, and it does nothing with sandboxes", async () => {
    const { key } = await makeKey("no-admin");
    for (const [method, path, body] of [
      ["GET", "/v1/keys"],
      ["POST", "/v1/keys", { name: "x", tenant: "local" }],
      ["PUT", "/v1/keys", { keys: [] }],
      ["DELETE", "/v1/keys/0123456789abcdef"],
    ] as const) {
      const sent = body === undefined ? {} : { body };
      expect(await refusal(call(method, path, { key: null, ...sent }))).toEqual([
        401,
        "unauthenticated",
      ]);
      for (const other of [keys.local, key]) {
        const response = call(method, path, { key: other, ...sent });
        expect(await refusal(response)).toEqual([403, "forbidden"]);
      }
    }
    expect(await refusal(admin("GET", "/v1/sandboxes"))).toEqual([401, "unauthenticated"]);
  });

  it("[KY3] bad input is refused by field", async () => {
    const fields = [
      [{ name: "Alice", tenant: "local" }, "name"],
      [{ name: "a", tenant: "_" }, "tenant"],
      [{ name: "a", tenant: "local", rights: ["all"] }, "rights.0"],
      [{ name: "a", tenant: "local", rights: [] }, "rights"],
      [{ name: "a", tenant: "local", ttlMs: 1 }, "ttlMs"],
    ] as const;
    for (const [body, field] of fields) {
      const { error } = await json(admin("POST", "/v1/keys", body));
      expect(error).toMatchObject({ code: "bad_request", field });
    }
    const { error } = await json(admin("DELETE", "/v1/keys/alice"));
    expect(error).toMatchObject({ code: "bad_request", field: "keyId" });
    expect((await admin("DELETE", "/v1/keys/0123456789abcdef")).status).toBe(204);
  });

  it("[KY4] removing a key ends its streams, sockets, tickets and tokens, and those of nobody else", async () => {
    const { id: keyId, key } = await makeKey("leaver");
    const stays = await makeKey("stayer");
    const id = await createSandbox();
    await api.request("POST", id, "/terminals", { id: "one" });
    const { id: process } = await api.request("POST", id, "/processes", {
      command: "echo begun; sleep 1000",
    });
    const made = await call("POST", pathOf(id, "/tokens"), { key, body: { rights } });
    const { token } = (await json(made)) as { token: string };
    const paths = [
      pathOf(id, "/events?follow=1"),
      pathOf(id, `/processes/${process}/logs?follow=1`),
      pathOf(id, "/files/watch?path=/workspace"),
      "/v1/events?follow=1",
    ];
    const follow = (bearer: string) =>
      Promise.all(
        paths.map(async (path) => {
          const response = await call("GET", path, { key: bearer });
          expect(response.status, path).toBe(200);
          const reader = (response.body as ReadableStream<Uint8Array>).getReader();
          await reader.read();
          return reader;
        }),
      );
    const readers = await follow(key);
    const others = await follow(stays.key);
    const ticket = await api.makeTicket(id, key);
    const open = async (tail: string, bearer: string | null) =>
      new FrameSocket(await call("GET", pathOf(id, tail), { headers: upgrade, key: bearer }));
    const terminal = "/terminals/one/connect";
    const ending = [
      await open(terminal, key),
      await open(terminal, token),
      await open(`${terminal}?ct=${await api.makeTicket(id, key)}`, null),
      await open("/lease/connect?holder=leaver", key),
    ];
    const staying = await open(terminal, stays.key);
    await ending[3]?.next("granted");

    expect((await admin("DELETE", `/v1/keys/${keyId}`)).status).toBe(204);
    await ring();
    for (const socket of ending) {
      await socket.ends();
      expect(socket.closed).toEqual({ code: 4401, reason: "revoked" });
    }
    for (const reader of readers) {
      await expect(readToEnd(reader)).rejects.toThrow();
    }
    const unknown = [401, "unauthenticated"];
    expect(await refusal(call("GET", pathOf(id), { key }))).toEqual(unknown);
    expect(await refusal(call("GET", pathOf(id), { key: token }))).toEqual(unknown);
    const withTicket = call("GET", pathOf(id, `${terminal}?ct=${ticket}`), {
      headers: upgrade,
      key: null,
    });
    expect(await refusal(withTicket)).toEqual(unknown);
    expect(staying.closed).toBeUndefined();
    expect((await call("GET", pathOf(id), { key: stays.key })).status).toBe(200);
    await eventually(async () => expect(await api.getLease(id)).toMatchObject({ state: "free" }));
    staying.socket.close(1000);
    for (const reader of others) await reader.cancel();
  });

  it("[KY5] an invented key costs no call of an object, however it looks", async () => {
    const calls: string[] = [];
    const { key } = await makeKey("counted");
    const counting = {
      ...env,
      KEYS: {
        getByName: () => ({
          async fileHashes() {
            calls.push("fileHashes");
            return [];
          },
          async find() {
            calls.push("find");
            return null;
          },
        }),
      },
    } as unknown as typeof env;
    const { findKey } = await import("../../../src/worker/auth/keys.ts");
    for (let n = 0; n < 100; n++) {
      await findKey(counting, `invented-${n}`);
      await findKey(counting, `bk_${"a".repeat(32)}${String(n).padStart(12, "x")}`);
    }
    expect(calls).toEqual(["fileHashes"]);
    // One that was made here and removed since is looked up once while the answer is remembered.
    for (let n = 0; n < 10; n++) expect(await findKey(counting, key)).toBeUndefined();
    expect(calls).toEqual(["fileHashes", "find"]);
    forgetKeys(counting);
  });

  it("[KY6] keys of a file are replaced as a whole; a name that is taken changes nothing", async () => {
    const bob = "a key of bob, made elsewhere".replaceAll(" ", "-");
    const entry = { name: "bob", tenant: "local", sha256: digestOf(bob), rights: ["read"] };
    expect((await admin("PUT", "/v1/keys", { keys: [entry] })).status).toBe(200);
    expect((await call("GET", "/v1/sandboxes", { key: bob })).status).toBe(200);
    const bobs = (await listed()).filter(({ name }) => name === "bob");
    expect(bobs).toMatchObject([{ source: "file", rights: ["read"] }]);
    const { error } = await json(admin("DELETE", `/v1/keys/${digestOf(bob).slice(0, 16)}`));
    expect(error).toMatchObject({ code: "bad_request", field: "keyId" });
    await makeKey("carol");
    const clash = { ...entry, name: "carol", sha256: digestOf("another") };
    expect(await refusal(admin("PUT", "/v1/keys", { keys: [clash] }))).toEqual([409, "name_taken"]);
    expect((await call("GET", "/v1/sandboxes", { key: bob })).status).toBe(200);
    expect((await admin("PUT", "/v1/keys", { keys: [] })).status).toBe(200);
    expect(await refusal(call("GET", "/v1/sandboxes", { key: bob }))).toEqual([
      401,
      "unauthenticated",
    ]);
    expect((await listed()).map(({ name }) => name)).toContain("carol");
  });
});

async function readToEnd(reader: ReadableStreamDefaultReader): Promise<void> {
  while (!(await reader.read()).done);
}
