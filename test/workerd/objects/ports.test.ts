import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import * as api from "../api.ts";
import { call, createSandbox, fetchWorker, json, keys, pathOf } from "../calls.ts";
import { containerOf } from "../container.ts";

const open = async (id: string, body: object = { port: 8000 }) =>
  api.request("POST", id, "/ports", body);
const fetchPort = (url: string, init: RequestInit = {}) =>
  fetchWorker(new Request(url, { redirect: "manual", ...init }));

describe("ports", () => {
  it("[J15] another Worker reaches them by its binding, or gets the public address of its binding", async () => {
    const { id } = await env.BERTH.create({ waitMs: 10_000 });
    await containerOf(id).serve(8000);
    const port = await env.BERTH.sandbox(id).openPort({ port: 8000 });
    expect(new URL(port.pathUrl).origin).toBe("http://berth");
    for (const url of [port.url, port.pathUrl]) {
      const answer = await env.BERTH.fetch(`${url}here?q=1`);
      expect(await answer.json()).toMatchObject({ method: "GET", path: "/here?q=1" });
    }
    const known = await env.PUBLIC.sandbox(id).openPort({ port: 8000 });
    const { host } = new URL(known.url);
    expect(known.pathUrl).toMatch(/^https:\/\/berth\.example\/p\/8000-/);
    expect(host).toMatch(/^8000-[a-z0-9-]+\.berth\.example$/);
    expect((await fetchPort(known.pathUrl)).status).toBe(200);
    await env.BERTH.sandbox(id).closePort(8000);
    expect((await env.BERTH.fetch(port.url)).status).toBe(404);
  });

  it("[J1] an address leads to the server in the sandbox, by its host and by its path", async () => {
    const id = await createSandbox();
    await containerOf(id).serve(8000);
    const port = await open(id);
    for (const url of [port.url, port.pathUrl]) {
      const answer = await fetchPort(`${url}some/path?q=1`, { method: "POST", body: "sent" });
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({
        method: "POST",
        path: "/some/path?q=1",
        body: "sent",
      });
    }
    expect(new URL(port.url).hostname).toMatch(/^8000-[a-z0-9-]+\.berth\.test$/);
  });

  it("[J2] no credential and no internal header crosses, in either direction", async () => {
    const id = await createSandbox();
    await containerOf(id).serve(8000);
    const port = await open(id);
    const sent = {
      authorization: `Bearer ${keys.local}`,
      "berth-lease": "secret",
      "berth-port-request": "{}",
      "x-own": "kept",
      cookie: "session=1",
    };
    const byHost = await (await fetchPort(port.url, { headers: sent })).json<Seen>();
    expect(byHost.headers).toMatchObject({ "x-own": "kept", cookie: "session=1" });
    const names = Object.keys(byHost.headers);
    expect(names.filter((name) => name === "berth-lease" || name === "berth-port-request")).toEqual(
      [],
    );
    expect(JSON.stringify(byHost)).not.toContain(keys.local);
    const byPath = await fetchPort(port.pathUrl, { headers: sent });
    expect((await byPath.clone().json<Seen>()).headers.cookie).toBeUndefined();
    expect(byPath.headers.get("content-security-policy")).toContain("sandbox");
    expect(byPath.headers.get("referrer-policy")).toBe("no-referrer");
    expect(byPath.headers.get("set-cookie")).toBeNull();
    expect([...byPath.headers.keys()].filter((name) => /^berth-(?!request-id)/.test(name))).toEqual(
      [],
    );
  });

  it("[J3] a token that is wrong, old, of another port or of an unknown sandbox finds nothing", async () => {
    const id = await createSandbox();
    await containerOf(id).serve(8000);
    const first = await open(id);
    const second = await open(id);
    expect(second.token).not.toBe(first.token);
    const wrong = [
      first.url,
      second.url.replace("8000-", "8001-"),
      second.url.replace(second.token, "0".repeat(26)),
      second.url.replace(id, `a${"0".repeat(23)}`),
    ];
    for (const url of wrong) expect((await fetchPort(url)).status, url).toBe(404);
    expect((await fetchPort(second.url)).status).toBe(200);
    expect((await call("DELETE", pathOf(id, "/ports/8000"))).status).toBe(204);
    expect((await fetchPort(second.url)).status).toBe(404);
    const { ports } = await api.request("GET", id, "/ports");
    expect(ports).toEqual([]);
  });

  it("[J29] a browser gets a page that explains, in which nothing is markup; a program gets JSON", async () => {
    const id = await createSandbox();
    await containerOf(id).serve(8000);
    const port = await open(id);
    const accept = "text/html,application/xhtml+xml;q=0.9";
    const closed = port.url.replace(port.token, "0".repeat(26));
    const invented = port.url.replace(id, `a${"0".repeat(23)}`);
    for (const url of [closed, invented]) {
      const shown = await fetchPort(url, { headers: { accept } });
      expect([shown.status, shown.headers.get("content-type")]).toEqual([
        404,
        "text/html; charset=utf-8",
      ]);
      const text = await shown.text();
      expect(text).toMatch(/<h1>This address shows nothing now<\/h1>/);
      expect(text.match(/<script|onerror/)).toBeNull();
      expect(shown.headers.get("content-security-policy")).toContain("default-src 'none'");
      expect((await json(fetchPort(url))).error).toMatchObject({ code: "not_found" });
    }
    const served = await fetchPort(port.url, { headers: { accept } });
    expect(served.headers.get("content-type")).not.toContain("text/html");
  });

  it("[J4] a request starts nothing unless the port allows it; a server that is down is reported with a hint", async () => {
    const id = await createSandbox();
    const still = await open(id);
    const waking = await open(id, { port: 9000, wake: true });
    expect(await json(fetchPort(still.url))).toMatchObject({
      error: { code: "port_unreachable", hint: expect.any(String) },
    });
    expect((await call("POST", pathOf(id, "/pause"))).status).toBe(200);
    const { starts } = await api.facts(id);
    expect((await fetchPort(still.url)).status).toBe(409);
    expect((await api.facts(id)).starts).toEqual(starts);
    expect((await fetchPort(waking.url)).status).toBe(502);
    expect((await api.facts(id)).starts).toHaveLength(starts.length + 1);
  });

  it("[J5] an address ends with its sandbox, and shows its token only when it is created", async () => {
    const id = await createSandbox();
    await containerOf(id).serve(8000);
    const port = await open(id);
    const text = await (await call("GET", pathOf(id, "/ports"))).text();
    expect(text).toContain("8000");
    expect(text).not.toContain(port.token);
    expect(await (await call("GET", pathOf(id, "/events"))).text()).not.toContain(port.token);
    await call("DELETE", pathOf(id));
    expect((await fetchPort(port.url)).status).toBe(410);
  });

  it("[J6] below a path, a missing slash and a redirect of the server work", async () => {
    const id = await createSandbox();
    await containerOf(id).serve(8000);
    const port = await open(id);
    const bare = await fetchPort(port.pathUrl.slice(0, -1));
    expect(bare.status).toBe(308);
    expect(bare.headers.get("location")).toBe(new URL(port.pathUrl).pathname);
    const moved = await fetchPort(`${port.pathUrl}redirect`);
    expect(moved.headers.get("location")).toBe(`${new URL(port.pathUrl).pathname}elsewhere`);
  });
});

type Seen = { headers: Record<string, string> };
