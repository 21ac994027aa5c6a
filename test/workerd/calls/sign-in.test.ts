/** Browsers that sign in: by a ticket once, with the rights of a key, from pages of the own address only. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { forgetKeys } from "../../../src/worker/auth/keys.ts";
import { call, json, keys, refusal } from "../calls.ts";

const administrator = "berth_administrator_of_the_tests";
const admin = (method: string, path: string, body?: unknown) =>
  call(method, path, { key: administrator, ...(body === undefined ? {} : { body }) });

const ticketOf = async (key: string) =>
  (await json(call("POST", "/v1/sign-ins", { key }))).ticket as string;
const signIn = (body: object, headers: Record<string, string> = {}) =>
  call("POST", "/v1/session", { key: null, body, headers });

/** The cookie as a browser sends it back. */
const cookieIn = (response: Response) => response.headers.get("set-cookie")?.split(";")[0] ?? "";
const asSession = (cookie: string, headers: Record<string, string> = {}) => ({
  key: null,
  headers: { authorization: "Bearer session", cookie, ...headers },
});

const unknown = [401, "unauthenticated"];

describe("signing in", () => {
  it("[DB1] a ticket signs in once; a used, expired or invented one is refused, and a key signs in too", async () => {
    const ticket = await ticketOf(keys.local);
    const signedIn = await signIn({ ticket });
    expect(signedIn.status).toBe(201);
    expect(await json(signedIn)).toMatchObject({ tenant: "local", rights: expect.any(Array) });
    expect(await refusal(signIn({ ticket }))).toEqual(unknown);
    expect(await refusal(signIn({ ticket: "A".repeat(43) }))).toEqual(unknown);
    const late = await ticketOf(keys.local);
    await runInDurableObject(env.KEYS.getByName("keys"), (_, { storage }) => {
      storage.sql.exec("UPDATE sign_in SET expires_at = 1");
    });
    expect(await refusal(signIn({ ticket: late }))).toEqual(unknown);
    expect((await signIn({ key: keys.other })).status).toBe(201);
    expect(await refusal(signIn({ key: "invented" }))).toEqual(unknown);
    for (const body of [{}, { ticket, key: keys.local }, { ticket: "short" }]) {
      expect(await refusal(signIn(body))).toEqual([400, "bad_request"]);
    }
    expect(await refusal(call("POST", "/v1/sign-ins", { key: null }))).toEqual(unknown);
  });

  it("[DB2] a session has the rights of its key, is listed, and ends with the key or by signing out", async () => {
    const reader = { name: "reader", tenant: "local", rights: ["read"] };
    const { id, key } = await json(admin("POST", "/v1/keys", reader));
    const cookie = cookieIn(await signIn({ ticket: await ticketOf(key) }));
    const other = cookieIn(await signIn({ key }));
    const session = await json(call("GET", "/v1/session", asSession(cookie)));
    expect(session).toMatchObject({ tenant: "local", rights: ["read"] });
    expect(session.name).toMatch(/^reader\.web-[0-9a-f]{6}$/);
    expect(Date.parse(session.expiresAt)).toBeGreaterThan(Date.now());
    expect((await call("GET", "/v1/sandboxes", asSession(cookie))).status).toBe(200);
    const create = { ...asSession(cookie), body: { start: false } };
    expect(await refusal(call("POST", "/v1/sandboxes", create))).toEqual([403, "forbidden"]);
    const listed = (await json(admin("GET", "/v1/keys"))).keys as Record<string, unknown>[];
    const sessions = listed.filter(({ signedInBy }) => signedInBy === id);
    expect(sessions.map(({ source }) => source)).toEqual(["session", "session"]);

    expect((await call("DELETE", "/v1/session", asSession(cookie))).status).toBe(204);
    expect(await refusal(call("GET", "/v1/sandboxes", asSession(cookie)))).toEqual(unknown);
    expect((await call("GET", "/v1/sandboxes", asSession(other))).status).toBe(200);
    expect((await admin("DELETE", `/v1/keys/${id}`)).status).toBe(204);
    expect(await refusal(call("GET", "/v1/sandboxes", asSession(other)))).toEqual(unknown);
    // Signing out ends no key.
    expect((await call("DELETE", "/v1/session")).status).toBe(204);
    expect((await call("GET", "/v1/session")).status).toBe(200);
  });

  it("[DB2] a session ends after its time, and what it has open with it", async () => {
    const cookie = cookieIn(await signIn({ key: keys.local }));
    const followed = await call("GET", "/v1/events?follow=1", asSession(cookie));
    const body = (followed.body as ReadableStream<Uint8Array>).getReader();
    await body.read();
    const object = env.KEYS.getByName("keys");
    await runInDurableObject(object, (_, { storage }) => {
      storage.sql.exec("UPDATE key SET expires_at = 1 WHERE source = 'session'");
    });
    await runDurableObjectAlarm(object);
    forgetKeys(env);
    expect(await refusal(call("GET", "/v1/session", asSession(cookie)))).toEqual(unknown);
    const readToEnd = async () => {
      while (!(await body.read()).done);
    };
    await expect(readToEnd()).rejects.toThrow();
  });

  it("[DB3] the cookie is for this page alone, and counts only where the header says so", async () => {
    const response = await signIn({ key: keys.local }, { "x-forwarded-proto": "https" });
    const attributes = response.headers.get("set-cookie") ?? "";
    for (const part of ["HttpOnly", "SameSite=Strict", "Secure", "Path=/v1"]) {
      expect(attributes).toContain(part);
    }
    expect(cookieIn(await signIn({ key: keys.local }))).not.toContain("Secure");
    const cookie = cookieIn(response);
    const get = (headers: Record<string, string>) =>
      call("GET", "/v1/sandboxes", { key: null, headers: { cookie, ...headers } });
    expect(await refusal(get({}))).toEqual(unknown);
    const session = { authorization: "Bearer session", host: "berth.test" };
    const own = { origin: "http://berth.test", "sec-fetch-site": "same-origin" };
    expect((await get({ ...session, ...own })).status).toBe(200);
    for (const foreign of [
      { origin: "https://app.test" },
      { origin: "null" },
      { origin: "http://8000-x.berth.test" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "cross-site" },
    ]) {
      expect(await refusal(get({ ...session, ...foreign }))).toEqual([403, "forbidden"]);
      expect(await refusal(signIn({ key: keys.local }, foreign))).toEqual([403, "forbidden"]);
    }
    expect(await refusal(call("GET", "/v1/sandboxes", asSession("")))).toEqual(unknown);
  });
});
