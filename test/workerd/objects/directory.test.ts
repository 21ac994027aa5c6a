import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import type { SandboxesPage } from "../../../src/protocol/directory.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, keys, pathOf, stubOf } from "../calls.ts";

const create = (body: object = {}, headers: Record<string, string> = {}, key = keys.local) =>
  call("POST", "/v1/sandboxes", { body, headers, key });
const list = async (query = "", key = keys.local) =>
  (await json(call("GET", `/v1/sandboxes${query}`, { key }))).sandboxes as Listed[];
const directory = () => env.DIRECTORY.getByName("local");
let scopeCount = 0;
const newScope = () => ({ repo: `github.com/a/b${scopeCount++}`, branch: "main" });
const idle = { start: false };

type Listed = SandboxesPage["sandboxes"][number];

/** As if the object had lost all its rows. */
const loseRows = (stub: DurableObjectStub) =>
  runInDurableObject(stub, async (_object, state) => {
    await state.storage.deleteAll();
    state.abort("lost its rows");
  }).catch(() => undefined);

describe("find or create", () => {
  it("[D1] fifty callers at once get one sandbox: one creates it, the others find it", async () => {
    const scope = newScope();
    const answers = await Promise.all(Array.from({ length: 50 }, () => create({ scope, ...idle })));
    const made = await Promise.all(answers.map(json));
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(49);
    expect(await list(`?scope.repo=${scope.repo}`)).toHaveLength(1);
  });

  it("[D2] a destroyed one is replaced, also one whose end was not reported", async () => {
    const scope = newScope();
    const first = await json(create({ scope, ...idle }));
    await call("DELETE", pathOf(first.id));
    const second = await json(create({ scope, ...idle }));
    expect(second.id).not.toBe(first.id);
    // It has reported everything, so nothing overwrites the rows below.
    const patched = await api.request("PATCH", second.id, "/metadata", { a: "1" });
    expect(patched.listed).toBeUndefined();
    // The Directory does not know that this one has ended.
    await api.runSql(
      stubOf(second.id),
      "UPDATE sandbox SET state = json_object('name', 'destroyed', 'since', ?, 'reason', 'x')",
      Date.now(),
    );
    await api.runSql(stubOf(second.id), "UPDATE listing SET revision = revision + 1");
    await runInDurableObject(stubOf(second.id), (_object, { storage }) => storage.sync());
    await api.crash(stubOf(second.id));
    expect((await list(`?scope.repo=${scope.repo}`)).map(({ id }) => id)).toEqual([second.id]);
    const third = await json(create({ scope, ...idle }));
    expect([first.id, second.id]).not.toContain(third.id);
    const shown = await list(`?scope.repo=${scope.repo}`);
    expect(shown.map(({ id, current }) => [id, current])).toEqual([[third.id, true]]);
  });

  it("[D3] replace ends the old one and creates a new one; error names the existing one", async () => {
    const scope = newScope();
    const old = await json(create({ scope, waitMs: 10_000 }));
    expect(await json(create({ scope, onExisting: "error" }))).toMatchObject({
      error: { code: "scope_taken", sandbox: old.id },
    });
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => create({ scope, onExisting: "replace", ...idle })),
    );
    for (const answer of answers) expect([200, 201]).toContain(answer.status);
    await eventually(async () => {
      const alive = await list(`?scope.repo=${scope.repo}`);
      expect(alive).toHaveLength(1);
    });
    expect(await api.get(old.id)).toMatchObject({ state: "destroyed", reason: "replaced" });
    expect((await api.facts(old.id)).alive).toBe(false);
  });

  it("[D3] replace of one whose lease is held names the holder and changes nothing, unless with its token or by force", async () => {
    const replace = (scope: object, query = "", headers: Record<string, string> = {}) =>
      call("POST", `/v1/sandboxes${query}`, {
        body: { scope, onExisting: "replace", ...idle },
        headers,
      });
    for (const how of ["token", "force"]) {
      const scope = newScope();
      const old = await json(create({ scope, ...idle }));
      const { token } = await api.request("POST", old.id, "/lease", { holder: "somebody" });
      const refused = await replace(scope);
      expect(refused.status).toBe(423);
      expect(await json(refused)).toMatchObject({
        error: { code: "lease_held", holder: "somebody", sandbox: old.id },
      });
      const other = await replace(scope, "", { "berth-lease": `${token.slice(1)}x` });
      expect(other.status).toBe(410);
      expect((await replace(scope, "?force=perhaps")).status).toBe(400);
      expect(await list(`?scope.repo=${scope.repo}`)).toMatchObject([
        { id: old.id, state: "paused", current: true },
      ]);
      const made = await (how === "force"
        ? replace(scope, "?force=true")
        : replace(scope, "", { "berth-lease": token }));
      expect(made.status).toBe(201);
      expect(await json(made)).toMatchObject({ replaced: old.id });
      const changes = await api.events(old.id);
      const by = how === "force" ? { by: "local" } : {};
      expect(changes).toContainEqual(
        expect.objectContaining({ state: "destroyed", reason: "replaced" }),
      );
      expect(changes).toContainEqual({
        ...{ type: "lease", what: "ended", fence: 1, holder: "somebody", reason: "destroyed" },
        ...by,
      });
    }
    const forced = await call("POST", "/v1/sandboxes?force=true", { body: idle });
    expect(await json(forced)).toMatchObject({ error: { code: "bad_request", field: "force" } });
  });

  it("[D4] a key returns the same sandbox again, and is refused for another call", async () => {
    const key = { "idempotency-key": crypto.randomUUID() };
    const [pathOf, two] = await Promise.all([create(idle, key), create(idle, key)]);
    const first = await json(pathOf);
    expect((await json(two)).id).toBe(first.id);
    expect((await json(create(idle, key))).id).toBe(first.id);
    expect((await create(idle, key)).status).toBe(200);
    const other = create({ ...idle, metadata: { a: "1" } }, key);
    expect(await json(other)).toMatchObject({ error: { code: "idempotency_mismatch" } });
    // A key of another tenant is another key.
    expect((await json(create(idle, key, keys.other))).id).not.toBe(first.id);
  });

  it("[D5] a decision is carried out although the Directory stopped before it could", async () => {
    const scope = newScope();
    // The row is as find-or-create writes it; the sandbox does not exist yet.
    const made = await json(create({ scope, ...idle }));
    await loseRows(stubOf(made.id));
    await runInDurableObject(directory(), (_object, state) => {
      const call = { spec: specOf(made.id, scope), metadata: {}, start: false };
      state.storage.sql.exec(
        "UPDATE sandbox SET phase = 'creating', call = ?, try_at = 1, view = NULL WHERE id = ?",
        JSON.stringify(call),
        made.id,
      );
      state.storage.setAlarm(Date.now() + 60_000);
    });
    await runDurableObjectAlarm(directory());
    await eventually(async () => expect(await api.get(made.id)).toMatchObject({ state: "paused" }));
    expect((await json(create({ scope, ...idle }))).id).toBe(made.id);
  });

  it("[D6] a sandbox that its object refuses is not listed, not found, and does not take the scope", async () => {
    const scope = newScope();
    const tooMany = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`k${n}`, "v"]));
    expect((await create({ scope, metadata: tooMany })).status).toBe(400);
    const hosts = create({ scope, network: { internet: true, allow: ["example.org"] } });
    expect((await hosts).status).toBe(501);
    expect(await list(`?scope.repo=${scope.repo}`)).toEqual([]);
    expect((await create({ scope, ...idle })).status).toBe(201);
  });
});

describe("find or create of a fork", () => {
  it("[D24] its key and its scope find it also when its origin is gone", async () => {
    const origin = await createSandbox();
    const checkpoint = await api.request("POST", origin, "/checkpoints", {});
    expect(checkpoint.id).toBeTypeOf("string");
    const key = { "idempotency-key": crypto.randomUUID() };
    const body = { ...idle, from: checkpoint.id, scope: newScope() };
    const made = await create(body, key);
    expect(made.status).toBe(201);
    const { id } = await json(made);
    expect((await call("DELETE", pathOf(origin))).status).toBe(200);
    const repeated = await create(body, key);
    expect(repeated.status).toBe(200);
    expect((await json(repeated)).id).toBe(id);
    expect((await json(create(body))).id).toBe(id);
    for (const fresh of [
      { ...body, scope: newScope() },
      { ...body, onExisting: "replace" },
    ]) {
      expect((await create(fresh)).status).toBe(410);
    }
    expect(await api.state(id)).toBe("paused");
  });
});

describe("a destroyed sandbox", () => {
  it("[D15] is listed for as long as its own object keeps its record", async () => {
    const scope = newScope();
    const { id } = await json(create({ scope, ...idle, metadata: { gone: "1" } }));
    await call("DELETE", pathOf(id));
    const shown = () => list(`?scope.repo=${scope.repo}&state=destroyed`);
    expect(await shown()).toHaveLength(1);
    await api.runSql(directory(), "UPDATE sandbox SET state_since = 1 WHERE id = ?", id);
    await create(idle);
    expect(await shown()).toEqual([]);
    expect(await api.runSql(directory(), "SELECT * FROM meta WHERE id = ?", id)).toEqual([]);
  });
});

describe("lists", () => {
  it("[D7] show recent changes, newest first, and nothing of other tenants", async () => {
    const mark = crypto.randomUUID();
    const made: string[] = [];
    for (let n = 0; n < 3; n++) {
      made.unshift((await json(create({ ...idle, metadata: { mark, n: String(n) } }))).id);
    }
    expect((await list(`?metadata=mark%3D${mark}`)).map(({ id }) => id)).toEqual(made);
    const [newest = ""] = made;
    await call("PATCH", pathOf(newest, "/metadata"), { body: { mark: null, stage: mark } });
    expect((await list(`?metadata=mark%3D${mark}`)).map(({ id }) => id)).toEqual(made.slice(1));
    const shown = await list(`?metadata=stage%3D${mark}&metadata=n%3D2`);
    expect(shown).toMatchObject([{ id: newest, metadata: { n: "2" }, state: "paused" }]);
    expect(await list(`?metadata=stage%3D${mark}`, keys.other)).toEqual([]);
    await call("DELETE", pathOf(newest));
    expect(await list(`?metadata=stage%3D${mark}`)).toEqual([]);
    expect(await list(`?metadata=stage%3D${mark}&state=destroyed`)).toHaveLength(1);
    const calls = (await api.facts(newest)).calls;
    expect(calls.filter((verb) => verb.startsWith("start"))).toEqual([]);
  });

  it("[D8] come in pages whose cursors stay valid while sandboxes are created", async () => {
    const mark = crypto.randomUUID();
    const made: string[] = [];
    for (let n = 0; n < 7; n++)
      made.unshift((await json(create({ ...idle, metadata: { mark } }))).id);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? "" : `&cursor=${cursor}`;
      const page = await json(call("GET", `/v1/sandboxes?limit=3&metadata=mark%3D${mark}${query}`));
      seen.push(...page.sandboxes.map(({ id }: Listed) => id));
      cursor = page.nextCursor;
      await create({ ...idle, metadata: { mark } });
    } while (cursor !== null);
    expect(seen).toEqual(made);
    for (const bad of [
      "cursor=x",
      "limit=0",
      "state=none",
      "metadata=a",
      "other=1",
      "limit=1001",
    ]) {
      expect((await call("GET", `/v1/sandboxes?${bad}`)).status, bad).toBe(400);
    }
  });

  it("[D9] are rebuilt from nothing by the next reports", async () => {
    const scope = newScope();
    const { id } = await json(create({ scope, ...idle, metadata: { a: "1" } }));
    await loseRows(directory());
    await call("PATCH", pathOf(id, "/metadata"), { body: { b: "2" } });
    const shown = await list(`?scope.repo=${scope.repo}`);
    expect(shown).toMatchObject([{ id, current: true, metadata: { a: "1", b: "2" } }]);
    expect((await json(create({ scope, ...idle }))).id).toBe(id);
    // A sandbox that reports nothing is unknown: its scope gets another one, and keeps that.
    await loseRows(directory());
    const other = await json(create({ scope, ...idle }));
    expect(other.id).not.toBe(id);
    await call("PATCH", pathOf(id, "/metadata"), { body: { b: "3" } });
    expect((await list(`?scope.repo=${scope.repo}`)).map((row) => [row.id, row.current])).toEqual([
      [other.id, true],
      [id, false],
    ]);
  });

  it("[D10] apply reports in the order of their revisions, even late ones", async () => {
    const scope = newScope();
    const { id } = await json(create({ scope, ...idle }));
    const late = await stubOf(id).report();
    if (late === undefined) throw new Error("it is there");
    await call("PATCH", pathOf(id, "/metadata"), { body: { newer: "1" } });
    await directory().applyReport(late);
    expect((await list(`?scope.repo=${scope.repo}`))[0]?.metadata).toEqual({ newer: "1" });
  });

  it("[D11] count by state, and list state and metadata events of all, each once", async () => {
    const before = (await json(call("GET", "/v1/counts"))).states;
    const { id } = await json(create(idle));
    await call("PATCH", pathOf(id, "/metadata"), { body: { a: "1" } });
    await call("PATCH", pathOf(id, "/metadata"), { body: { a: "2" } });
    const after = (await json(call("GET", "/v1/counts"))).states;
    expect(after.paused).toBe((before.paused ?? 0) + 1);
    const listed: object[] = [];
    let cursor = "0";
    for (;;) {
      const page = await json(call("GET", `/v1/events?limit=1000&after=${cursor}`));
      for (const { sandbox, event } of page.events) if (sandbox === id) listed.push(event);
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(listed).toMatchObject([
      { type: "state", state: "paused" },
      { type: "metadata", set: { a: "1" } },
      { type: "metadata", set: { a: "2" } },
    ]);
  });

  it("[D25] all events of a sandbox are reported once its Directory can be reached, however many", async () => {
    const { id } = await json(create(idle));
    const many = limits.reportEventsMax * 2 + 30;
    const patch = (n: number) =>
      call("PATCH", pathOf(id, "/metadata"), { body: { n: String(n) } }).then(({ status }) =>
        expect(status).toBe(200),
      );
    await withoutReports(() => Promise.all(Array.from({ length: many }, (_, n) => patch(n))));
    await patch(many);
    await eventually(async () => {
      const seen: string[] = [];
      for (let cursor: string | null = "0"; cursor !== null; ) {
        const page = await json(call("GET", `/v1/events?limit=1000&after=${cursor}`));
        for (const { sandbox, event } of page.events) {
          if (sandbox === id && event.type === "metadata") seen.push(event.set.n);
        }
        cursor = page.nextCursor;
      }
      expect(seen).toHaveLength(many + 1);
      expect(new Set(seen).size).toBe(many + 1);
    });
  });

  it("[D12] a token of one sandbox lists nothing, and a change says when lists are behind", async () => {
    const id = await createSandbox(idle);
    const { token } = await api.request("POST", id, "/tokens", { rights: ["read", "lifecycle"] });
    for (const path of ["/v1/sandboxes", "/v1/counts", "/v1/events"]) {
      expect((await call("GET", path, { key: token })).status).toBe(403);
    }
    await withoutReports(async () => {
      const answer = await api.request("PATCH", id, "/metadata", { a: "1" });
      expect(answer).toMatchObject({ metadata: { a: "1" }, listed: false });
      const made = await json(create({ waitMs: 20_000 }));
      expect(made).toMatchObject({ state: "running", listed: false });
    });
    const scope = newScope();
    const heard = await json(create({ scope, waitMs: 20_000 }));
    expect(heard).not.toHaveProperty("listed");
    expect(await list(`?scope.repo=${scope.repo}`)).toMatchObject([{ state: "running" }]);
  });
});

/** The Directory accepts no reports during the work. */
async function withoutReports(work: () => Promise<unknown>): Promise<void> {
  const instance = await runInDurableObject(
    directory(),
    (object) => object as unknown as { applyReport: () => Promise<unknown> },
  );
  const applyReport = vi.spyOn(instance, "applyReport").mockRejectedValue(new Error("away"));
  try {
    await work();
  } finally {
    applyReport.mockRestore();
  }
}

function specOf(id: string, scope: object) {
  return {
    id,
    tenant: "local",
    createdAt: Date.now(),
    env: {},
    network: { internet: true },
    idleTimeoutMs: 600_000,
    onIdle: "pause",
    wake: "auto",
    scope: { ...scope, config: "" },
  };
}
