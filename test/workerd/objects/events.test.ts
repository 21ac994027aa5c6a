import { evictDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, pathOf, stubOf } from "../calls.ts";
import { containerOf } from "../container.ts";
import { overRest } from "../world.ts";

const path = (id: string, query = "") => pathOf(id, `/events${query}`);
const patch = async (id: string, n: number) =>
  api.request("PATCH", id, "/metadata", { n: String(n) });

/** Reads a stream of events up to a number of events, then cancels it. */
async function follow(response: Response, count: number) {
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  const blocks = () => text.split("\n\n").slice(0, -1);
  const numbered = () => blocks().filter((block) => block.startsWith("id: "));
  while (numbered().length < count) {
    const { value, done } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return {
    blocks: blocks(),
    ids: numbered().map((block) => Number(/^id: (\d+)/.exec(block)?.[1])),
  };
}

describe("the stream of events", () => {
  it("[Y22] continues after Last-Event-ID across evictions, without loss or repeat", async () => {
    const id = await createSandbox();
    const seen: number[] = [];
    for (let round = 0; round < 4; round++) {
      const last = seen.at(-1);
      const headers = last === undefined ? {} : { "last-event-id": String(last) };
      const stream = await call("GET", path(id, "?follow=1"), { headers });
      await patch(id, round * 2);
      await patch(id, round * 2 + 1);
      seen.push(...(await follow(stream, 2)).ids);
      await evictDurableObject(stubOf(id));
    }
    const rest = await call("GET", path(id, `?follow=1&after=${seen.at(-1)}`));
    const all = (await json(call("GET", path(id)))).events.map(({ seq }: { seq: number }) => seq);
    seen.push(...(await follow(rest, all.length - seen.length)).ids);
    expect(seen).toEqual(all);
    expect(all).toEqual(all.map((_seq: number, index: number) => index + 1));
  });

  it("[S19] reports a container that exits while no call comes", { timeout: 60_000 }, async () => {
    const id = await createSandbox();
    const last = (await json(call("GET", path(id)))).events.at(-1).seq;
    const stream = await call("GET", path(id, `?follow=1&after=${last}`));
    await containerOf(id).exit();
    const { blocks } = await follow(stream, 1);
    expect(blocks.join("\n")).toContain('"state":"failed","reason":"container_lost"');
  });

  it("[Y22] reports at once what happens while it is open", async () => {
    const id = await createSandbox();
    const last = (await json(call("GET", path(id)))).events.at(-1).seq;
    const stream = await call("GET", path(id, `?follow=1&after=${last}`));
    const read = follow(stream, 1);
    await patch(id, 1);
    const { blocks } = await read;
    const block = blocks.find((item) => item.startsWith("id: ")) ?? "";
    const lines = block.split("\n");
    expect(lines.slice(0, 2)).toEqual([`id: ${last + 1}`, "event: metadata"]);
    expect(JSON.parse((lines[2] ?? "").slice("data: ".length))).toMatchObject({
      seq: last + 1,
      event: { type: "metadata", version: 1, set: { n: "1" } },
    });
  });

  it("[Y22] is requested by Accept alone too, for one sandbox and for all", async () => {
    const id = await createSandbox();
    const headers = { accept: "text/event-stream" };
    for (const [n, of] of [path(id), "/v1/events"].entries()) {
      expect((await follow(await call("GET", of, { headers }), 1)).ids[0]).toBe(1);
      const last = (await json(call("GET", `${of}?limit=1000`))).events.at(-1).seq;
      const back = { ...headers, "last-event-id": String(last) };
      const stream = await call("GET", `${of}?after=0`, { headers: back });
      await patch(id, n);
      const { ids } = await follow(stream, 1);
      expect(ids[0]).toBeGreaterThan(last);
    }
  });

  it("[Y7] reports a gap before the first remaining event", async () => {
    const id = await createSandbox();
    await overRest.fillEvents(id, limits.eventsMax + 90);
    for (let n = 0; n < 20; n++) await patch(id, n);
    const { blocks, ids } = await follow(await call("GET", path(id, "?follow=1&after=1")), 1);
    expect(blocks[0]).toBe("event: gap\ndata: {}");
    expect(ids[0]).toBeGreaterThan(2);
  });

  it("[Y22] has a bounded number of readers, and places become free when they disconnect", async () => {
    const id = await createSandbox();
    const open: Response[] = [];
    for (let n = 0; n < limits.eventFollowersMax; n++) {
      open.push(await call("GET", path(id, "?follow=1")));
    }
    const more = await call("GET", path(id, "?follow=1"));
    expect(more.status).toBe(429);
    expect(await json(more)).toMatchObject({
      error: { code: "too_many", followersMax: limits.eventFollowersMax },
    });
    for (const stream of open) await follow(stream, 1);
    // A disconnected reader is noticed at the next heartbeat at the latest.
    const limit = performance.now() + 2 * limits.eventHeartbeatMs;
    for (;;) {
      const reopened = await call("GET", path(id, "?follow=1"));
      if (reopened.status === 200) return await follow(reopened, 1);
      await reopened.text();
      expect(performance.now()).toBeLessThan(limit);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
});
