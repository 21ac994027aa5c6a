import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { type Right, rights } from "../../../src/protocol/rights.ts";
import { type VerbRow, verbs } from "../../../src/protocol/verbs.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, keys, pathOf } from "../calls.ts";
import { sample, samplePath } from "../samples.ts";

const tokenOf = async (id: string, list: readonly Right[], ttlMs?: number) => {
  const made = await call("POST", pathOf(id, "/tokens"), { body: { rights: list, ttlMs } });
  expect(made.status).toBe(201);
  return String((await json(made)).token);
};
const statusOf = async (method: string, path: string, key: string) => {
  const response = await call(method, path, { key });
  await response.text();
  return response.status;
};

const ofOne = Object.entries(verbs as Record<string, VerbRow>).filter(([, { path }]) =>
  path.includes(":id"),
);
const byRight = ofOne.filter(([, { right }]) => right !== undefined && right !== "key");

afterEach(() => {
  vi.useRealTimers();
});

describe("a token", () => {
  it.each(byRight)(
    "[Y18] without the right is refused, with it alone it passes: %s",
    async (name, route) => {
      const enough = [route.right ?? []].flat() as Right[];
      const id = await createSandbox();
      const others = rights.filter((item) => !enough.includes(item));
      const before = await api.request("GET", id, "/events");
      const request = (key: string) =>
        call(route.method, samplePath(id, route), { key, ...sample(name) });
      const refused = await request(await tokenOf(id, others));
      expect(refused.status).toBe(403);
      expect(await json(refused)).toMatchObject({
        error: { code: "forbidden", right: route.right },
      });
      expect(await api.request("GET", id, "/events")).toEqual(before);

      for (const right of enough) {
        const passed = await request(await tokenOf(id, [right]));
        await passed.body?.cancel();
        passed.webSocket?.accept();
        passed.webSocket?.close();
        expect([401, 403]).not.toContain(passed.status);
        expect(passed.status).toBeLessThan(500);
      }
    },
  );

  it("[Y18] makes no tokens, revokes none and creates no sandbox, whatever its rights", async () => {
    const id = await createSandbox();
    const token = await tokenOf(id, rights);
    expect(await statusOf("POST", pathOf(id, "/tokens"), token)).toBe(403);
    expect(await statusOf("DELETE", pathOf(id, "/tokens"), token)).toBe(403);
    expect(await statusOf("POST", "/v1/sandboxes", token)).toBe(403);
    expect(await statusOf("GET", pathOf(id), token)).toBe(200);
  });

  it("[Y18] breaks a lease only with the right admin", async () => {
    const id = await createSandbox();
    const { token } = await api.acquireLease(id, { holder: "one" });
    const path = pathOf(id, "/lease?break=true&reason=why");
    expect(await statusOf("DELETE", path, await tokenOf(id, ["lease"]))).toBe(403);
    expect((await api.getLease(id)).holder).toBe("one");
    expect(await statusOf("DELETE", path, await tokenOf(id, ["lease", "admin"]))).toBe(200);
    const late = await call("PUT", pathOf(id, "/lease"), {
      body: {},
      headers: { "berth-lease": token },
    });
    expect(await json(late)).toMatchObject({ error: { code: "lease_lost", reason: "broken" } });
  });

  it("[Y19] works for its own sandbox only", async () => {
    const [id, other] = [await createSandbox(), await createSandbox()];
    const token = await tokenOf(id, rights);
    for (const [name, route] of ofOne) {
      const response = await call(route.method, samplePath(other, route), {
        key: token,
        ...sample(name),
      });
      expect(response.status, name).toBe(403);
      await response.text();
    }
    expect(await statusOf("GET", pathOf(id), token)).toBe(200);
  });

  it("[Y19] ends at its time, with a revocation, and with the sandbox", async () => {
    const id = await createSandbox();
    const short = await tokenOf(id, ["read"], limits.tokenTtlMinMs);
    const long = await tokenOf(id, ["read", "lifecycle"]);
    expect(await statusOf("GET", pathOf(id), short)).toBe(200);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + limits.tokenTtlMinMs });
    expect(await statusOf("GET", pathOf(id), short)).toBe(401);
    expect(await statusOf("GET", pathOf(id), long)).toBe(200);
    vi.useRealTimers();

    expect(await statusOf("DELETE", pathOf(id, "/tokens"), keys.local)).toBe(204);
    expect(await statusOf("GET", pathOf(id), long)).toBe(401);
    const fresh = await tokenOf(id, ["read", "lifecycle"]);
    expect(await statusOf("GET", pathOf(id), fresh)).toBe(200);
    expect(await statusOf("DELETE", pathOf(id), fresh)).toBe(200);
    expect(await statusOf("POST", pathOf(id, "/start"), fresh)).toBe(410);
    const late = await call("POST", pathOf(id, "/tokens"), { body: { rights: ["read"] } });
    expect(await json(late)).toMatchObject({ error: { code: "sandbox_destroyed" } });
  });

  it("[Y19] that was changed in any place is refused", async () => {
    const id = await createSandbox();
    const token = await tokenOf(id, ["read"]);
    const [payload = "", signature = ""] = token.slice(3).split(".");
    const claims = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/")));
    const more = btoa(JSON.stringify([...claims.slice(0, 3), [0, 1, 2, 3, 4, 5, 6], claims[4]]));
    const forged = [
      `bt_${more.replaceAll("=", "")}.${signature}`,
      `bt_${payload}.${signature.slice(0, -2)}xx`,
      `bt_${payload}.`,
      `bt_${payload}`,
      `bt_.${signature}`,
      "bt_",
      "bt_.",
      `${token}.${signature}`,
      `bt_${"x".repeat(400)}.${signature}`,
    ];
    expect(await statusOf("GET", pathOf(id), token)).toBe(200);
    for (const item of forged) expect(await statusOf("GET", pathOf(id), item), item).toBe(401);
  });

  it("[Y10] unused connect tickets are bounded, and expire", async () => {
    const id = await createSandbox();
    const make = () => call("POST", pathOf(id, "/tickets"));
    for (let n = 0; n < limits.connectTicketsMax; n++) expect((await make()).status).toBe(201);
    expect(await json(make())).toMatchObject({
      error: { code: "too_many", ticketsMax: limits.connectTicketsMax },
    });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + limits.connectTicketMs });
    expect((await make()).status).toBe(201);
  });
});
