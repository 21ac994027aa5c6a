import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Download } from "../../../src/client/http/download.ts";
import type { Progress } from "../../../src/client/http/upload.ts";
import type { SandboxCalls } from "../../../src/client/verbs.ts";
import { connectCalls } from "../../berth-calls.ts";
import {
  connectScripted,
  disconnect,
  type Responder,
  rejection,
  respond,
  respondError,
} from "./scripted-server.ts";

const busy = respondError("unavailable");
const writeResult = { path: "/workspace/f", size: 1 };
const all = randomBytes(1_000_000);
const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function* chunks(...sizes: number[]): AsyncGenerator<Uint8Array> {
  let offset = 0;
  for (const size of sizes) {
    yield all.subarray(offset, offset + size);
    offset += size;
  }
}

/** Sends half of the declared bytes, then breaks the connection. */
const half: Responder = (response) => {
  response.writeHead(200, {
    "content-length": all.length,
    etag: '"e"',
    "last-modified": new Date(0).toUTCString(),
    "berth-request-id": "r",
  });
  response.write(all.subarray(0, all.length / 2), () => setImmediate(() => response.destroy()));
};

const endless: Responder = (response) => {
  response.writeHead(200, { "last-modified": new Date(0).toUTCString() });
  const more = () => {
    while (response.write(all)) {}
    response.once("drain", more);
  };
  more();
};

describe("uploads", () => {
  it("[SD6] arrive complete from bytes, Blobs and streams, with their length, and report progress", async () => {
    const kinds = [
      all,
      new Blob([all]),
      { stream: chunks(1, 99_999, 900_000), bytes: all.length },
    ] as const;
    for (const content of kinds) {
      const { sandbox, server } = await connectScripted([respond(writeResult)]);
      const reported: Progress[] = [];
      const progress = (seen: Progress) => reported.push(seen);
      await sandbox.writeFile("f", content, { progress, mode: "600" });
      const [request] = server.requests;
      expect(request?.path).toBe("/v1/sandboxes/a/files?path=f&mode=600");
      expect(request?.headers["content-length"]).toBe(String(all.length));
      expect(hash(request?.body ?? Buffer.alloc(0))).toBe(hash(all));
      expect(reported.length).toBeGreaterThan(2);
      expect(reported.at(-1)).toEqual({ bytes: all.length, total: all.length });
      const steps = reported.map(({ bytes }) => bytes);
      expect(steps).toEqual(steps.toSorted((a, b) => a - b));
    }
  });

  it("[SD6] of another length than declared fail and say why", async () => {
    for (const [sizes, message] of [
      [[10], /ended after 10/],
      [[10, 991], /brought more/],
    ] as const) {
      const { sandbox } = await connectScripted([respond(writeResult)]);
      const content = { stream: chunks(...sizes), bytes: 1000 };
      const error = await rejection(sandbox.writeFile("f", content));
      expect(error).toMatchObject({ code: "bad_request", facts: { field: "bytes" } });
      expect(error.message).toMatch(message);
    }
  });

  it("[SD6] fail with the error of their source", async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield all.subarray(0, 10);
      throw new Error("the disk is gone");
    }
    const { sandbox, server } = await connectScripted([respond(writeResult)]);
    const error = await rejection(sandbox.writeFile("f", { stream: broken(), bytes: 20 }));
    expect(error.message).toBe("the disk is gone");
    expect(server.requests.length).toBeLessThanOrEqual(1);
  });

  it("[SD6] close their source when the call ends", async () => {
    let isReleased = false;
    async function* waiting(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield all.subarray(0, 1000);
      } finally {
        isReleased = true;
      }
    }
    const { sandbox, server } = await connectScripted([respond(writeResult)]);
    const controller = new AbortController();
    const content = { stream: waiting(), bytes: 2 ** 40 };
    const call = rejection(sandbox.writeFile("f", content, { signal: controller.signal }));
    await expect.poll(() => server.requests.length).toBe(1);
    controller.abort(new Error("enough"));
    expect(await call).toMatchObject({ message: "enough" });
    await expect.poll(() => isReleased).toBe(true);
  });

  it("[SD6] are sent again when all bytes are in memory", async () => {
    const { sandbox, server } = await connectScripted([busy, respond(writeResult)]);
    await sandbox.writeFile("f", all, { progress: () => undefined });
    expect(server.requests.map(({ body }) => hash(body))).toEqual([hash(all), hash(all)]);
  });

  it("[SD6] are not sent again from a stream, nor when they may have arrived", async () => {
    const { sandbox, server } = await connectScripted([busy, disconnect, respond(writeResult)]);
    const content = { stream: chunks(1000), bytes: 1000 };
    expect((await rejection(sandbox.writeFile("f", content))).code).toBe("unavailable");
    expect(server.requests).toHaveLength(1);
    const error = await rejection(sandbox.uploadArchive(".", all));
    expect(error).toMatchObject({ code: "operation_interrupted" });
  });
});

describe("downloads", () => {
  it("[SD7] that are cut off fail with the number of bytes received", async () => {
    const { sandbox } = await connectScripted([half]);
    const reported: Progress[] = [];
    const progress = (seen: Progress) => reported.push(seen);
    const { body, size } = await sandbox.readFile("f", { progress });
    expect(size).toBe(all.length);
    let bytes = 0;
    const reading = (async () => {
      for await (const chunk of body) bytes += chunk.byteLength;
    })();
    const error = await rejection(reading);
    expect(bytes).toBe(all.length / 2);
    expect(error).toMatchObject({ code: "unavailable", requestId: "r", facts: { bytes } });
    expect(reported.at(-1)).toEqual({ bytes, total: all.length });
  });

  it("[SD7] fail after an idle timeout; the reader's own time does not count", async () => {
    let isCancelled = false;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(all.subarray(0, 10)),
      cancel() {
        isCancelled = true;
      },
    });
    const download = new Download(new Response(stream), { idleTimeoutMs: 50 });
    expect((await download.next()).value).toHaveLength(10);
    const error = await rejection(download.next());
    expect(error).toMatchObject({ code: "unavailable", facts: { bytes: 10 } });
    expect(error.message).toContain("no bytes for 50 ms");
    expect(isCancelled).toBe(true);
  });

  it("[SD7] end on an abort even if the given fetch ignores the signal", async () => {
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      cancel() {
        isCancelled = true;
      },
    });
    const fetch = async () => new Response(body);
    const berth = connectCalls({ url: "http://127.0.0.1:1", key: "k", fetch });
    const controller = new AbortController();
    const { signal } = controller;
    const query = { raw: true, follow: true, stream: "stdout" } as const;
    const log = await berth.sandbox("a").processLogs("p", { ...query, signal });
    const reading = rejection(log[Symbol.asyncIterator]().next());
    controller.abort(new Error("enough"));
    expect(await reading).toMatchObject({ message: "enough" });
    expect(isCancelled).toBe(true);
  });

  it("[SD7] end when the reader stops, disposes of them unread, or aborts", async () => {
    const stops: ((sandbox: SandboxCalls) => Promise<unknown>)[] = [
      async (sandbox) => {
        for await (const _ of await sandbox.downloadArchive(".")) break;
      },
      async (sandbox) => {
        await using _unread = (await sandbox.downloadArchive(".")) as unknown as AsyncDisposable;
      },
      async (sandbox) => {
        const controller = new AbortController();
        const stream = await sandbox.watchFiles({ path: ".", signal: controller.signal });
        const reading = (async () => {
          for await (const _ of stream) controller.abort(new Error("enough"));
        })();
        expect(await rejection(reading)).toMatchObject({ message: "enough" });
      },
    ];
    for (const stop of stops) {
      const { sandbox, server } = await connectScripted([endless]);
      await stop(sandbox);
      expect(server.requests).toHaveLength(1);
      await server.requests[0]?.closed;
    }
  });
});
