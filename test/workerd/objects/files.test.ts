import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, keys, pathOf } from "../calls.ts";
import { containerOf } from "../container.ts";

const put = (id: string, path: string, body: string, headers = {}) =>
  call("PUT", pathOf(id, `/files?path=${path}`), {
    body,
    headers: { "content-type": "text/x", ...headers },
  });
const get = (id: string, path: string, headers = {}) =>
  call("GET", pathOf(id, `/files?path=${path}`), { headers });
const lease = (id: string, body = {}) => call("POST", pathOf(id, "/lease"), { body });

async function release(id: string, granted: Response): Promise<void> {
  const { token } = await json(granted);
  await api.releaseLease(id, token);
}

/** What has arrived of a stream so far. */
function reading(answer: Response) {
  let text = "";
  const reader = answer.body?.getReader();
  const over = (async () => {
    for (;;) {
      const read = await reader?.read();
      if (read === undefined || read.done) return;
      text += new TextDecoder().decode(read.value);
    }
  })().catch(() => undefined);
  return {
    get text() {
      return text;
    },
    over,
    leave: () => reader?.cancel(),
  };
}

/** RPC returns thenables, not promises: each is awaited once, here. */
async function refused(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

/** Waits longer than `vi.waitUntil` does by default. */
const soon = (holds: () => boolean) => vi.waitUntil(holds, 30_000);

const clone = (id: string, name: string, headers = {}) =>
  call("POST", pathOf(id, "/git/clone"), { body: { url: `https://git.example/${name}` }, headers });

describe("files through the Worker", () => {
  it("[FD15] have the agent's public headers and no internal ones", async () => {
    const id = await createSandbox();
    const made = await put(id, "file.txt", "0123456789");
    expect(made.status).toBe(201);
    const etag = made.headers.get("etag") ?? "";
    expect((await json(made)).etag).toBe(etag);
    const complete = await get(id, "file.txt");
    expect(await complete.text()).toBe("0123456789");
    expect(Object.fromEntries(complete.headers)).toMatchObject({
      etag,
      "content-length": "10",
      "content-type": "application/octet-stream",
      "accept-ranges": "bytes",
      "last-modified": expect.stringMatching(/GMT$/),
      "cache-control": "no-cache",
    });
    const internal = [...complete.headers.keys()].filter((name) => name.startsWith("berth-"));
    expect(internal).toEqual(["berth-request-id"]);
    const part = await get(id, "file.txt", { range: "bytes=2-4" });
    expect([part.status, part.headers.get("content-range")]).toEqual([206, "bytes 2-4/10"]);
    expect(await part.text()).toBe("234");
    const same = await get(id, "file.txt", { "if-none-match": etag });
    expect([same.status, same.headers.get("etag"), await same.text()]).toEqual([304, etag, ""]);
    const outside = await get(id, "file.txt", { range: "bytes=10-" });
    expect([outside.status, outside.headers.get("content-range")]).toEqual([416, "bytes */10"]);
    expect(await json(outside)).toMatchObject({ error: { code: "bad_range", size: 10 } });
    expect((await json(put(id, "file.txt", "x", { "if-match": '"other"' }))).error.code).toBe(
      "file_changed",
    );
    expect((await json(put(id, "file.txt", "x", { "if-match": etag }))).size).toBe(1);
  });

  it("[FD15] are refused before a byte is read if they are too large", async () => {
    const id = await createSandbox();
    const askedFor = async () =>
      (await api.facts(id)).requests.filter((call) => call.includes("files"));
    const bytes = String(limits.fileBytesMax + 1);
    const refused = await put(id, "large", "x", { "content-length": bytes });
    expect(refused.status).toBe(413);
    expect(await json(refused)).toMatchObject({
      error: { code: "too_large", bytesMax: limits.fileBytesMax },
    });
    expect(await askedFor()).toEqual([]);
  });

  it("[FD16] are cloned with progress, gated until the end", async () => {
    const id = await createSandbox();
    const done = await (await clone(id, "berth.git")).text();
    expect(done).toMatch(/event: progress[\s\S]*event: done\ndata: \{"dir":"\/workspace\/berth"/);
    expect(await (await get(id, "berth/README.md")).text()).toBe("# berth\n");
    expect(await (await clone(id, "missing")).text()).toMatch(/event: error\n.*clone_failed/);
    await release(id, await lease(id));

    const slow = reading(await clone(id, "slow"));
    await soon(() => slow.text.includes("event: progress"));
    expect((await api.facts(id)).running).toBe(1);
    const pending = await lease(id);
    expect(pending.status).toBe(423);
    await pending.text();
    expect((await api.request("DELETE", id, "?force=true")).state).toBe("destroyed");
    await slow.over;
  });

  it("[FD16] a clone stops when the lease is lost", async () => {
    const id = await createSandbox();
    const { token } = await json(lease(id, { holder: "one", ttlMs: limits.leaseTtlMaxMs }));
    const slow = reading(await clone(id, "slow", api.leaseHeader(token)));
    await soon(() => slow.text.includes("event: progress"));
    await api.request("DELETE", id, "/lease?break=true&reason=why");
    await slow.over;
    expect(slow.text).toMatch(/event: error\n.*operation_interrupted/);
    const next = await lease(id, { waitMs: 20_000 });
    expect(next.status).toBe(201);
    await release(id, next);
  });

  it("[FD16] a clone or watch ends with an error event when the container exits", async () => {
    const id = await createSandbox();
    const streams = [
      reading(await call("GET", pathOf(id, "/files/watch"))),
      reading(await clone(id, "slow")),
    ];
    await soon(() => streams.every(({ text }) => text.includes("event: ")));
    await containerOf(id).exit();
    for (const { over } of streams) await over;
    for (const { text } of streams) expect(text).toMatch(/event: error\n.*operation_interrupted/);
    const granted = await lease(id, { waitMs: 20_000 });
    expect(granted.status).toBe(201);
    await release(id, granted);
  });

  it("[FD7] a read or watch does not delay a lease", async () => {
    const id = await createSandbox();
    await json(put(id, "file", "1"));
    const watch = reading(await call("GET", pathOf(id, "/files/watch")));
    const read = await get(id, "file");
    await soon(() => watch.text.includes("event: ready"));
    const granted = await lease(id);
    expect(granted.status).toBe(201);
    await release(id, granted);
    expect(await read.text()).toBe("1");
    await watch.leave();
  });

  it("[FD17] an upload overtaken by a newer fence is not written, and can be sent again", async () => {
    const id = await createSandbox();
    await json(put(id, "file", "old"));
    await containerOf(id).raiseFence(1);
    const overtaken = await put(id, "file", "new");
    expect([overtaken.status, overtaken.headers.get("retry-after")]).toEqual([503, "1"]);
    expect((await json(overtaken)).error).toMatchObject({ code: "unavailable", retryable: true });
    expect(await (await get(id, "file")).text()).toBe("old");
    await containerOf(id).raiseFence(-1);
    expect((await put(id, "file", "new")).status).toBe(200);
    expect(await (await get(id, "file")).text()).toBe("new");
  });

  it("[FD18] cannot be reached by an internal header that a caller sends", async () => {
    const id = await createSandbox();
    await json(put(id, "file", "1"));
    const caller = { tenant: "local", rights: ["files"] };
    const transferHeader = JSON.stringify({ caller, noun: "files", gated: { mayWake: true } });
    for (const key of [keys.other, null]) {
      for (const tail of ["/files?path=file", "/terminals/a/connect", "/lease/connect"]) {
        const headers = { "berth-transfer": transferHeader, upgrade: "websocket" };
        const answer = await call("GET", pathOf(id, tail), { key, headers });
        expect(answer.status).toBe(key === null ? 401 : 404);
        await answer.text();
      }
    }
    expect(await (await get(id, "file")).text()).toBe("1");
  });

  it("[FD19] have their length for another Worker, so that a truncated stream is noticed", async () => {
    const id = await createSandbox();
    const url = `http://berth.test${pathOf(id, "/files?path=file")}`;
    const pieces = () =>
      new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(new TextEncoder().encode("all of it"));
          controller.close();
        },
      });
    const endless = await env.BERTH.fetch(url, { method: "PUT", body: pieces() });
    expect(endless.status).toBe(400);
    expect((await json(endless)).error).toMatchObject({ field: "Content-Length" });
    const { readable, writable } = new FixedLengthStream(9);
    const piped = pieces().pipeTo(writable);
    const sized = await env.BERTH.fetch(url, { method: "PUT", body: readable });
    await piped;
    expect(sized.status).toBe(201);
    await sized.text();
    expect(await (await get(id, "file")).text()).toBe("all of it");
    const box = env.BERTH.sandbox(id);
    const contents = [pieces(), { stream: pieces() }, { stream: pieces(), bytes: -1 }, "text"];
    for (const content of contents) {
      expect(await refused(box.writeFile("other", content as never))).toBe("bad_request");
    }
    expect((await get(id, "other")).status).toBe(404);
  });
});
