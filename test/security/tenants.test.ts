/** Two tenants of one Berth, tokens and tickets that are stolen, repeated or changed, and pages of somebody else. */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join as pathOf } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { root } from "../../container/launch/paths.js";
import { limits } from "../../src/protocol/limits.ts";
import { generateSandboxId } from "../../src/worker/auth/ids.ts";
import { until } from "../until.ts";
import { Attacked, allowedOrigin, get, otherKey } from "./attacked-server.ts";
import { join } from "./sockets.ts";

/** The characters of random ids. */
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";

describe("tenants, tokens and tickets", () => {
  const berth = Attacked.shared();
  let mine: string;
  let foreign: string;

  beforeAll(async () => {
    const call = { scope: { repo: "the-same" }, metadata: { secret: "of one" } };
    mine = await berth.create(call);
    foreign = await berth.create(call, otherKey);
    await berth.ok("PUT", "/v1/plans/same", {});
    await berth.ok("POST", of(mine, "/terminals"), { id: "main" });
  });

  const of = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
  const tokenOf = async (id: string, rights: string[], ttlMs?: number) =>
    String((await berth.ok("POST", of(id, "/tokens"), { rights, ttlMs })).token);
  const ticketOf = async (id: string, key?: string) =>
    String((await berth.ok("POST", of(id, "/tickets"), undefined, key ? { key } : {})).ticket);
  const status = async (path: string, key: string, method = "GET", body?: string) =>
    (await berth.send({ method, path, key, ...(body === undefined ? {} : { body }) })).status;
  const leasePath = (id: string) => `${berth.server.url}${of(id, "/lease/connect")}`;
  const terminalPath = (id: string) => `${berth.server.url}${of(id, "/terminals/main/connect")}`;

  it("[SC6] two tenants with one scope have two sandboxes, and lists, counts, events and plans of their own", async () => {
    expect(mine).not.toBe(foreign);
    for (const path of ["/v1/sandboxes", "/v1/sandboxes?scope.repo=the-same", "/v1/events"]) {
      const answer = await berth.send(get(path));
      const other = await berth.send({ ...get(path), key: otherKey });
      expect([answer.status, other.status]).toEqual([200, 200]);
      expect(answer.text).toContain(mine);
      expect(answer.text).not.toContain(foreign);
      expect(other.text).toContain(foreign);
      expect(other.text).not.toContain(mine);
    }
    expect((await berth.ok("GET", "/v1/counts")).total).toBe(1);
    expect(await berth.ok("GET", "/v1/plans", undefined, { key: otherKey })).toMatchObject({
      plans: [],
    });
    expect(await status("/v1/plans/same", otherKey)).toBe(404);
  });

  it("[SC6] one tenant's checkpoint, member, lease and key of a call are nothing to another", async () => {
    const { id } = await berth.ok("POST", of(mine, "/checkpoints"), {});
    const fork = { method: "POST", path: "/v1/sandboxes", body: JSON.stringify({ from: id }) };
    expect((await berth.send({ ...fork, key: otherKey })).status).toBe(404);
    const member = JSON.stringify({ sandboxId: mine });
    await berth.ok("PUT", "/v1/plans/theirs", {}, { key: otherKey });
    expect(await status("/v1/plans/theirs/sandboxes/a", otherKey, "PUT", member)).toBe(404);
    const headers = { "idempotency-key": "one-key-of-two" };
    const create = async (key: string) =>
      (await berth.ok("POST", "/v1/sandboxes", { start: false }, { headers, key })).id;
    const made = await create(berth.server.key);
    expect(await create(otherKey)).not.toBe(made);
    expect(await create(berth.server.key)).toBe(made);
    const lease = await berth.ok("POST", of(mine, "/lease"), {});
    const withIt = { "berth-lease": String(lease.token) };
    const stolen = { method: "PUT", path: of(mine, "/lease"), body: "{}", headers: withIt };
    expect((await berth.send({ ...stolen, key: otherKey })).status).toBe(404);
    const used = await berth.send({ ...stolen, path: of(foreign, "/lease"), key: otherKey });
    expect(used.status).toBe(410);
    await berth.ok("DELETE", of(mine, "/lease"), undefined, { headers: withIt });
  });

  it("[SC6] ids cannot be guessed: neighbours of a real one, and thousands of others, address no object", async () => {
    const objects = berth.objects();
    const last = mine.at(-1) ?? "";
    const near = ["a", "b", "z", "0", "9"]
      .filter((character) => character !== last)
      .map((character) => mine.slice(0, -1) + character);
    const otherSecret = "a secret of another installation";
    const elsewhere = Array.from({ length: 2000 }, () => generateSandboxId(otherSecret));
    const ids = [...near, ...elsewhere];
    while (ids.length > 0) {
      const answers = await Promise.all(
        ids.splice(0, 16).map((id) => status(of(id), berth.server.key)),
      );
      expect(new Set(answers)).toEqual(new Set([404]));
    }
    expect(berth.objects()).toEqual(objects);
  });

  it("[SC7] a token that was changed anywhere, signed by another secret, or for a foreign tenant opens nothing", async () => {
    const token = await tokenOf(mine, ["read"]);
    expect(await status(of(mine), token)).toBe(200);
    for (let index = 3; index < token.length; index++) {
      const other = token[index] === "A" ? "B" : "A";
      const changed = token.slice(0, index) + other + token.slice(index + 1);
      // The last character of a signature has bits that mean nothing: they may not be used either.
      expect(await status(of(mine), changed), `${index}`).toBe(401);
    }
    const [payload = ""] = token.slice(3).split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as unknown[];
    const forged = Buffer.from(JSON.stringify(["other", foreign, ...claims.slice(2)])).toString(
      "base64url",
    );
    for (const secret of ["", "berth", berth.server.key]) {
      const signature = createHmac("sha256", secret)
        .update(`sandbox token ${forged}`)
        .digest("base64url");
      expect(await status(of(foreign), `bt_${forged}.${signature}`)).toBe(401);
    }
    expect(await status(of(foreign), token)).toBe(403);
  });

  it("[SC7] a token dies by its time, by a revocation and with its sandbox, and cannot make another", async () => {
    const short = await tokenOf(mine, ["read"], 1000);
    const long = await tokenOf(mine, ["read", "lifecycle", "admin"]);
    expect(await status(of(mine, "/tokens"), long, "POST", '{"rights":["read"]}')).toBe(403);
    await until("the end of a token", async () => (await status(of(mine), short)) === 401);
    expect(await status(of(mine), long)).toBe(200);
    await berth.ok("DELETE", of(mine, "/tokens"));
    expect(await status(of(mine), long)).toBe(401);
    const destroyed = await berth.create({ start: false });
    const last = await tokenOf(destroyed, ["read", "exec"]);
    await berth.ok("DELETE", of(destroyed));
    expect(await status(of(destroyed, "/exec"), last, "POST", '{"command":"true"}')).toBe(410);
  });

  it("[SC8] a ticket opens one WebSocket: not a second one, no other sandbox's, no other route, no other tenant's", async () => {
    const ticket = await ticketOf(mine);
    expect(await status(of(mine, `?ct=${ticket}`), "")).toBe(401);
    expect((await join(`${leasePath(foreign)}?ct=${ticket}`)).status).toBe(401);
    const first = await join(`${terminalPath(mine)}?ct=${ticket}`);
    expect(first.status).toBe(101);
    for (const path of [terminalPath(mine), leasePath(mine), leasePath(foreign)]) {
      expect(await join(`${path}?ct=${ticket}`)).toMatchObject({
        status: 401,
        code: "unauthenticated",
      });
    }
    first.socket?.close();
    const raced = await ticketOf(mine);
    const all = await Promise.all(
      Array.from({ length: 10 }, () => join(`${terminalPath(mine)}?ct=${raced}`)),
    );
    expect(all.filter((response) => response.status === 101)).toHaveLength(1);
    for (const { socket } of all) socket?.close();
  });

  it("[SC8] a ticket has the rights of its maker, and dies when tokens are revoked", async () => {
    const leaser = await tokenOf(mine, ["lease"]);
    const ofLeaser = await ticketOf(mine, leaser);
    expect((await join(`${terminalPath(mine)}?ct=${ofLeaser}`)).status).toBe(403);
    const late = await ticketOf(mine, leaser);
    await berth.ok("DELETE", of(mine, "/tokens"));
    expect((await join(`${leasePath(mine)}?ct=${late}`)).status).toBe(401);
  });

  it("[SC8] pages of other origins open no WebSocket, with a key or a ticket; listed ones do", async () => {
    const authorization = `Bearer ${berth.server.key}`;
    const joinByTicket = async (origin: string) =>
      join(`${leasePath(mine)}?ct=${await ticketOf(mine)}`, { headers: { origin } });
    const origins = ["https://evil.test", "null", `${allowedOrigin}.evil.test`, "http://app.test"];
    for (const origin of origins) {
      const byKey = await join(terminalPath(mine), { headers: { authorization, origin } });
      expect(byKey.status, origin).toBe(403);
      expect((await joinByTicket(origin)).status, origin).toBe(403);
    }
    const page = await joinByTicket(allowedOrigin);
    expect(page.status).toBe(101);
    page.socket?.close();
  });

  it("[SC20] every secret is random each time, and the address of a port has as many random bits as promised", async () => {
    const [ports, tickets, leases] = [new Set<string>(), new Set<string>(), new Set<string>()];
    const drawn = { ports, tickets, leases };
    const times = 200;
    for (let n = 0; n < times; n++) {
      const { token, url } = await berth.ok("POST", of(mine, "/ports"), { port: 8000 });
      expect(String(url)).toContain(`8000-${mine}-${token}.`);
      drawn.ports.add(String(token));
      if (n >= limits.connectTicketsMax / 2) continue;
      drawn.tickets.add(await ticketOf(mine));
      const lease = await berth.ok("POST", of(mine, "/lease"), {});
      drawn.leases.add(String(lease.token));
      const headers = { "berth-lease": String(lease.token) };
      await berth.ok("DELETE", of(mine, "/lease"), undefined, { headers });
    }
    await berth.ok("DELETE", of(mine, "/ports/8000"));
    await berth.ok("DELETE", of(mine, "/tokens"));
    expect(drawn.ports.size).toBe(times);
    expect(drawn.tickets.size).toBe(limits.connectTicketsMax / 2);
    expect(drawn.leases.size).toBe(limits.connectTicketsMax / 2);
    const bits = (chars: number) => Math.floor(chars * Math.log2(alphabet.length));
    const lengths = { ports: limits.portTokenChars, tickets: 32, leases: 32 };
    for (const [what, length] of Object.entries(lengths)) {
      const all = [...drawn[what as keyof typeof drawn]];
      const isRight = (id: string) => new RegExp(`^[a-z0-9]{${length}}$`).test(id);
      expect(all.every(isRight), what).toBe(true);
      // No character is left out, and none stands still at any place.
      expect([...new Set(all.join(""))].sort().join("")).toBe([...alphabet].sort().join(""));
      for (let index = 0; index < length; index++)
        expect(new Set(all.map((id) => id[index])).size).toBeGreaterThan(alphabet.length / 3);
      expect(bits(length)).toBeGreaterThanOrEqual(128);
    }
    const page = readFileSync(pathOf(root, "docs", "operate", "security.md"), "utf8");
    expect(page).toContain(`its address, with ${bits(limits.portTokenChars)} random bits`);
  });

  it("[SC7] the secret that signs is in no answer", async () => {
    const secret = readFileSync(pathOf(berth.server.data, "secret"), "utf8").trim();
    expect(secret.length).toBeGreaterThanOrEqual(32);
    const paths = ["/", "/health", "/openapi.json", of(mine), "/v1/sandboxes", of(mine, "/events")];
    for (const path of paths) {
      expect((await berth.send(get(path))).text).not.toContain(secret);
    }
  });
});
