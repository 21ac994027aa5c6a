/** What every route refuses, made from the table of routes: no route can be left out. */
import { describe, expect, it } from "vitest";
import { rights } from "../../src/protocol/rights.ts";
import { type VerbName, type VerbRow, verbs } from "../../src/protocol/verbs.ts";
import { type Answered, otherKey, type Sent } from "./attacked-server.ts";
import { goodCall, hasJsonBody, wrongTypes } from "./routes.ts";
import { Scene } from "./scene.ts";

const all = Object.entries(verbs as Record<string, VerbRow>) as [VerbName, VerbRow][];
/** Those of administrators refuse the keys of tenants before they read anything; an image or a template has to be there. */
const ofOthers: VerbName[] = [
  "getImage",
  ...(["getTemplate", "readTemplateLog", "cancelTemplateBuild", "removeTemplate"] as const),
];
const locked = all.filter(
  ([name, { right }]) =>
    right !== undefined && right !== "administrator" && !ofOthers.includes(name),
);
const ofOne = locked.filter(([, { path }]) => path.includes(":id"));
const ofAPlan = locked.filter(([, { path }]) => path.includes(":plan"));
const withBody = locked.filter(([, route]) => hasJsonBody(route));
const withoutBody = locked.filter(([, { method, body }]) => method !== "GET" && body === undefined);
const byRight = ofOne.filter(([, { right }]) => right !== "key");
const byKey = locked.filter(([, { right }]) => right === "key");

/** Status, and every byte and header but those that are drawn for each answer. */
function comparable({ status, headers, body }: Answered): unknown {
  const { "berth-request-id": _id, date: _date, ...rest } = headers;
  const { requestId: _requestId, ...said } = body;
  return { status, headers: rest, said };
}

describe("every route", () => {
  const scene = new Scene();
  const send = (call: Sent) => scene.berth.send(call);
  const call = (name: VerbName, id = scene.names.held ?? "") => goodCall(name, id, "mine");

  const tokenOf = async (id: string, list: readonly string[]) =>
    String((await scene.berth.ok("POST", `/v1/sandboxes/${id}/tokens`, { rights: list })).token);
  const unchanged = async (answer: Answered, status: number, code: string, field?: string) => {
    expect({ status: answer.status, ...answer.body.error }).toMatchObject({
      status,
      code,
      ...(field === undefined ? {} : { field }),
    });
    expect(await scene.seen()).toEqual(scene.before);
  };

  it("[SC3] is looked at", () => {
    expect(all.length).toBeGreaterThanOrEqual(66);
    expect(ofOne.length + ofAPlan.length).toBeGreaterThan(55);
    expect(withBody.length).toBeGreaterThan(15);
    expect(withoutBody.length).toBeGreaterThan(10);
  });

  it.each(locked)("[SC3] refuses a field of the query that it does not have: %s", async (name) => {
    const { path, ...rest } = call(name);
    const more = path.includes("?") ? "&" : "?";
    const answer = await send({ ...rest, path: `${path}${more}colour=red` });
    await unchanged(answer, 400, "bad_request", "colour");
  });

  it.each(locked)(
    "[SC3] refuses a query that is no UTF-8, and a field that is given twice: %s",
    async (name) => {
      const { path, ...rest } = call(name);
      const more = path.includes("?") ? "&" : "?";
      const noUtf8 = await send({ ...rest, path: `${path}${more}colour=%FF` });
      await unchanged(noUtf8, 400, "bad_request");
      const twice = await send({ ...rest, path: `${path}${more}wake=0&wake=0` });
      await unchanged(twice, 400, "bad_request");
    },
  );

  it.each(withBody)("[SC3] refuses a field of the body that it does not have: %s", async (name) => {
    const good = call(name);
    const body = JSON.stringify({ ...JSON.parse(String(good.body ?? "{}")), "a colour": "red" });
    const answer = await send({ ...good, body });
    const said = answer.body.error;
    // Metadata have names of the caller's choice: there it is the name itself that does not fit.
    await unchanged(answer, 400, "bad_request");
    if (name !== "putMember") expect(said?.field).toBe("a colour");
  });

  it.each(withBody)(
    "[SC3] refuses a field of a wrong type, each of them, by its name: %s",
    async (name, route) => {
      const good = call(name);
      const wrong = wrongTypes(route);
      if (name !== "putPlan") expect(wrong.length).toBeGreaterThan(0);
      for (const [field, value] of wrong) {
        const body = JSON.stringify({ ...JSON.parse(String(good.body ?? "{}")), [field]: value });
        const answer = await send({ ...good, body });
        expect([answer.status, answer.body.error?.code], field).toEqual([400, "bad_request"]);
        const { field: named = "" } = answer.body.error ?? {};
        if (name !== "putMember") expect(named.split(".")[0]).toBe(field);
        expect(named).not.toBe("");
      }
      expect(await scene.seen()).toEqual(scene.before);
    },
  );

  it.each(withBody)(
    "[SC3] refuses a body of another type, half of one, and no object: %s",
    async (name) => {
      const good = call(name);
      const headers = { ...good.headers, "content-type": "text/plain" };
      const typed = await send({ ...good, body: "a=b", headers });
      await unchanged(typed, 415, "unsupported_type");
      await unchanged(await send({ ...good, body: '{"a":' }), 400, "bad_json");
      await unchanged(await send({ ...good, body: "[]" }), 400, "bad_request");
    },
  );

  it.each(withoutBody)("[SC3] refuses a body where it takes none: %s", async (name) => {
    const good = call(name);
    const colour = await send({ ...good, body: '{"colour":"red"}' });
    await unchanged(colour, 400, "bad_request", "colour");
    const headers = { ...good.headers, "content-type": "text/plain" };
    const typed = await send({ ...good, headers, body: "a=b" });
    await unchanged(typed, 415, "unsupported_type");
    await unchanged(await send({ ...good, body: '{"a":' }), 400, "bad_json");
    await unchanged(await send({ ...good, body: "[]" }), 400, "bad_request", "body");
  });

  it.each(all)(
    "[SC3] refuses a method that it does not take, and names those that it does: %s",
    async (name, route) => {
      const { path } = call(name);
      const methods = all
        .filter((other) => other[1].path === route.path)
        .map(([, { method }]) => method);
      const [method = ""] = ["PATCH", "DELETE", "PUT", "POST", "GET"].filter(
        (method) => !methods.includes(method as VerbRow["method"]),
      );
      const answer = await send({ method, path });
      expect(String(answer.headers.allow).split(", ").sort()).toEqual(
        expect.arrayContaining([...new Set(methods)].sort()),
      );
      await unchanged(answer, 405, "method_not_allowed");
    },
  );

  it.each(locked)("[SC3] asks for a key: %s", async (name) => {
    for (const key of [null, "berth_of_nobody"]) {
      const answer = await send({ ...call(name), key });
      expect(answer.headers["www-authenticate"]).toBe("Bearer");
      await unchanged(answer, 401, "unauthenticated");
    }
  });

  it.each([...ofOne, ...ofAPlan.filter(([, { method }]) => method !== "PUT")])(
    "[SC4] answers another tenant as if there were nothing, to the byte: %s",
    async (name) => {
      const { held = "", invented = "" } = scene.names;
      const foreign = await send({ ...goodCall(name, held, "mine"), key: otherKey });
      const nobodys = await send({ ...goodCall(name, invented, "nobodys"), key: otherKey });
      expect(foreign.status).toBe(404);
      expect(comparable(foreign)).toEqual(comparable(nobodys));
      await unchanged(foreign, 404, "not_found");
      const mine = await send(goodCall(name, invented, "nobodys"));
      expect(comparable(mine)).toEqual(comparable(nobodys));
    },
  );

  it.each(byRight)(
    "[SC5] refuses a token without its right, and one of another sandbox: %s",
    async (name, route) => {
      const { held = "", asleep = "" } = scene.names;
      const enough = [route.right ?? []].flat() as string[];
      const others = rights.filter((right) => !enough.includes(right));
      const without = await tokenOf(held, others);
      await unchanged(await send({ ...call(name), key: without }), 403, "forbidden");
      const elsewhere = await tokenOf(asleep, rights);
      await unchanged(await send({ ...call(name), key: elsewhere }), 403, "forbidden");
    },
  );

  it.each(byKey)(
    "[SC5] refuses a token with every right where only a key will do: %s",
    async (name) => {
      const key = await tokenOf(scene.names.held ?? "", rights);
      await unchanged(await send({ ...call(name), key }), 403, "forbidden");
    },
  );

  it("[SC3] left no row in any object", () => {
    expect(scene.rows()).toEqual(scene.rowsBefore);
  });
});
