/** What another Worker may do by its binding: over the whole table of routes that need a key, by methods and by fetch. */
import { beforeAll, describe, expect, it } from "vitest";
import type { BerthApi } from "../../../src/protocol/api.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { type Right, rights } from "../../../src/protocol/rights.ts";
import { type VerbName, type VerbRow, verbs } from "../../../src/protocol/verbs.ts";
import { FakeBerth } from "../../fakes/berth.ts";

/** A binding has no key that a browser could sign in with; test/workerd/calls/sign-in.test.ts has these. */
const ofSignIns: VerbName[] = ["createSignIn", "getCaller", "signOut"];
const byKey = (Object.entries(verbs) as [VerbName, VerbRow][]).filter(
  ([name, { right }]) => right === "key" && !ofSignIns.includes(name),
);

const berth = new FakeBerth();
const bind = (some: readonly Right[]) => berth.bind({ tenant: "local", rights: some });
const all = bind(rights);
let id = "";

type Verb = (api: BerthApi) => Promise<unknown>;
const bindingCalls: Partial<Record<VerbName, Verb>> = {
  createSandbox: (api) => api.create({ scope: { repo: "r" }, start: false }),
  listSandboxes: (api) => api.list(),
  countSandboxes: (api) => api.counts(),
  listTenantEvents: (api) => api.events(),
  listImages: (api) => api.images(),
  getImage: (api) => api.image("app:1"),
  buildTemplate: (api) => api.buildTemplate({ name: "t" }),
  listTemplates: (api) => api.templates(),
  getTemplate: (api) => api.template("t").get(),
  readTemplateLog: (api) => api.template("t").log(),
  cancelTemplateBuild: (api) => api.template("t").cancel(),
  removeTemplate: (api) => api.template("t").remove(),
  createToken: (api) => api.sandbox(id).createToken({ rights: ["read"] }),
  revokeTokens: (api) => api.sandbox(id).revokeTokens(),
  listPlans: (api) => api.plans(),
  putPlan: (api) => api.plan("p").put(),
  getPlan: (api) => api.plan("p").get(),
  putMember: (api) => api.plan("p").putMember("m", { create: { start: false } }),
  commitPlan: (api) => api.plan("p").commit(),
  rollbackPlan: (api) => api.plan("p").rollback(),
  listCommits: (api) => api.plan("p").commits(),
  getCommit: (api) => api.plan("p").commitOf(1),
  removeMember: (api) => api.plan("p").removeMember("m"),
  removePlan: (api) => api.plan("p").remove(),
};

/** By REST, with the binding's rights in place of a key. */
async function fetched(api: BerthApi, { method, path }: VerbRow): Promise<Response> {
  const said: Record<string, string> = { id, plan: "p", key: "m", n: "1", template: "t" };
  const url = `http://berth${path.replaceAll(/:(\w+)/g, (_, name) => said[name] ?? "")}`;
  const reads = method === "GET" || method === "DELETE";
  const request = new Request(url, {
    method,
    ...(reads ? {} : { body: "{}", headers: { "content-type": "application/json" } }),
  });
  return (api as BerthApi & { fetch: (request: Request) => Promise<Response> }).fetch(request);
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: { code?: string }) => error.code ?? String(error),
  );

beforeAll(async () => {
  ({ id } = await all.create({ start: false }));
});

describe("a binding", () => {
  it("[SC21] needs a right for every route with a key, except createToken, which grants only the caller's own rights", () => {
    const without = byKey.filter(([, { needs }]) => needs === undefined);
    expect(without.map(([name]) => name)).toEqual(["createToken"]);
    expect(Object.keys(bindingCalls).sort()).toEqual(byKey.map(([name]) => name).sort());
  });

  it.each(byKey.filter(([, { needs }]) => needs !== undefined))(
    "[SC21] without the right is refused and changes nothing; with that right alone it passes: %s",
    async (name, route) => {
      await all.plan("p").put();
      const verb = bindingCalls[name] as Verb;
      const needs = [route.needs ?? []].flat() as Right[];
      const seen = async () => [await all.list(), await all.plans(), await all.plan("p").get()];
      const before = await seen();
      const others = bind(rights.filter((right) => !needs.includes(right)));
      await expect(verb(others)).rejects.toMatchObject({
        code: "forbidden",
        facts: { right: route.needs },
      });
      const refused = await fetched(others, route);
      expect(refused.status).toBe(403);
      expect(await refused.json()).toMatchObject({
        error: { code: "forbidden", right: route.needs },
      });
      expect(await seen()).toEqual(before);
      for (const right of needs) {
        expect(await codeOf(verb(bind([right])))).not.toBe("forbidden");
        expect((await fetched(bind([right]), route)).status).not.toBe(403);
      }
      expect(await codeOf(verb(berth.bind({ tenant: "local" })))).not.toBe("forbidden");
    },
  );

  it("[SC21] replaces no sandbox without the right to end it, and finds it", async () => {
    const scope = { repo: "github.com/bindings/replaced" };
    const made = await all.create({ scope, start: false });
    const runner = bind(["exec"]);
    const replaced = runner.create({ scope, onExisting: "replace", start: false });
    await expect(replaced).rejects.toMatchObject({
      code: "forbidden",
      facts: { right: "lifecycle" },
    });
    expect(await runner.create({ scope })).toMatchObject({ id: made.id, found: true });
  });

  it("[W4] has the same wait limit as any other caller, and a limited reason for breaking a lease", async () => {
    const made = await all.create({ start: false });
    const sandbox = all.sandbox(made.id);
    for (const waitMs of [limits.waitMaxMs + 1, -1, 0.5, Number.NaN, "5" as unknown as number]) {
      for (const refused of [
        sandbox.exec({ command: "true" }, { waitMs }),
        sandbox.pause({ waitMs }),
        sandbox.writeFile("f", new Uint8Array(1), { waitMs }),
      ]) {
        await expect(refused).rejects.toMatchObject({
          code: "bad_request",
          facts: { field: "waitMs" },
        });
      }
    }
    const long = "x".repeat(limits.reasonCharsMax + 1);
    for (const reason of ["", long, "a\u001b[2Jb", "a\nb", "\u009b", undefined as never]) {
      await expect(sandbox.breakLease(reason)).rejects.toMatchObject({
        code: "bad_request",
        facts: { field: "reason" },
      });
    }
    expect((await sandbox.get()).state).toBe("paused");
    await sandbox.exec({ command: "true" }, { waitMs: limits.waitMaxMs });
  });

  it("[SC21] gives no token a right that it lacks", async () => {
    const reader = bind(["read"]);
    for (const right of rights.filter((name) => name !== "read")) {
      const refused = reader.sandbox(id).createToken({ rights: ["read", right] });
      await expect(refused).rejects.toMatchObject({ code: "forbidden", facts: { right } });
    }
    expect(await reader.sandbox(id).createToken({ rights: ["read"] })).toMatchObject({
      rights: ["read"],
    });
  });

  it("[SC21] follows no events without the right to read", async () => {
    const others = bind(rights.filter((right) => right !== "read"));
    await expect(others.streamEvents()).rejects.toMatchObject({ code: "forbidden" });
    const stream = (await bind(["read"]).streamEvents()) as ReadableStream<Uint8Array>;
    await stream.cancel();
  });

  it("[SC21] with only unknown rights is refused everything", async () => {
    for (const some of [null, "read", ["everything"], [1]]) {
      const api = berth.bind({ tenant: "local", rights: some as never });
      expect(await codeOf(api.list())).toBe("unauthenticated");
    }
  });
});
