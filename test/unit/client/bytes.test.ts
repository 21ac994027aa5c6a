import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Download } from "../../../src/client/http/download.ts";
import { type Berth, type BerthError, connect, type Progress } from "../../../src/client/index.ts";
import { noted } from "./clocks.ts";
import { type Answer, breakOff, refuse, Scripted, tell } from "./scripted.ts";

type Scene = { berth: Berth; scripted: Scripted };

async function scene(answers: Answer[], play: (scene: Scene) => Promise<void>): Promise<void> {
  await using scripted = await Scripted.answering(...answers);
  const { clock } = noted();
  await play({ berth: connect({ url: scripted.url, key: "k", clock }), scripted });
}

const failure = (call: Promise<unknown>) =>
  call.then(
    (answer) => Promise.reject(new Error(`answered ${JSON.stringify(answer)}`)),
    (thrown) => thrown as BerthError,
  );

const written = { path: "/workspace/f", size: 1 };
const all = randomBytes(1_000_000);
const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function* pieces(...sizes: number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (const size of sizes) {
    yield all.subarray(at, at + size);
    at += size;
  }
}

/** Half of the bytes that were told, and then the connection breaks. */
const half: Answer = (response) => {
  response.writeHead(200, {
    "content-length": all.length,
    etag: '"e"',
    "last-modified": new Date(0).toUTCString(),
    "berth-request-id": "r",
  });
  response.write(all.subarray(0, all.length / 2), () => setImmediate(() => response.destroy()));
};

const endless: Answer = (response) => {
  response.writeHead(200, { "last-modified": new Date(0).toUTCString() });
  const more = () => {
    while (response.write(all)) {}
    response.once("drain", more);
  };
  more();
};

describe("bytes on their way up", () => {
  it("[SD6] arrive whole however they are given, with their length, and tell how far they are", async () => {
    const kinds = [
      all,
      new Blob([all]),
      { stream: pieces(1, 99_999, 900_000), bytes: all.length },
    ] as const;
    for (const content of kinds) {
      await scene([tell(written)], async ({ berth, scripted }) => {
        const told: Progress[] = [];
        const progress = (seen: Progress) => told.push(seen);
        await berth.sandbox("a").writeFile("f", content, { progress, mode: "600" });
        const [asked] = scripted.asked;
        expect(asked?.path).toBe("/v1/sandboxes/a/files?path=f&mode=600");
        expect(asked?.headers["content-length"]).toBe(String(all.length));
        expect(hash(asked?.body ?? Buffer.alloc(0))).toBe(hash(all));
        expect(told.length).toBeGreaterThan(2);
        expect(told.at(-1)).toEqual({ bytes: all.length, total: all.length });
        const steps = told.map(({ bytes }) => bytes);
        expect(steps).toEqual(steps.toSorted((one, other) => one - other));
      });
    }
  });

  it("[SD6] that are not as many as was told fail, and their sender is told why", async () => {
    for (const [sizes, said] of [
      [[10], /10 came/],
      [[10, 991], /more came/],
    ] as const) {
      await scene([tell(written)], async ({ berth }) => {
        const content = { stream: pieces(...sizes), bytes: 1000 };
        const error = await failure(berth.sandbox("a").writeFile("f", content));
        expect(error).toMatchObject({ code: "bad_request", facts: { field: "bytes" } });
        expect(error.message).toMatch(said);
      });
    }
  });

  it("[SD6] whose source fails end with that failure, and the source is let go when the call is", async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield all.subarray(0, 10);
      throw new Error("the disk is gone");
    }
    await scene([tell(written)], async ({ berth, scripted }) => {
      const error = await failure(
        berth.sandbox("a").writeFile("f", { stream: broken(), bytes: 20 }),
      );
      expect(error.message).toBe("the disk is gone");
      expect(scripted.asked.length).toBeLessThanOrEqual(1);
    });
    let isLetGo = false;
    async function* waiting(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield all.subarray(0, 1000);
      } finally {
        isLetGo = true;
      }
    }
    await scene([tell(written)], async ({ berth, scripted }) => {
      const given = new AbortController();
      const content = { stream: waiting(), bytes: 2 ** 40 };
      const call = failure(berth.sandbox("a").writeFile("f", content, { signal: given.signal }));
      await expect.poll(() => scripted.asked.length).toBe(1);
      given.abort(new Error("enough"));
      expect(await call).toMatchObject({ message: "enough" });
      await expect.poll(() => isLetGo).toBe(true);
    });
  });

  it("[SD6] are sent again where they are all here, and a stream never is", async () => {
    await scene([refuse("unavailable"), tell(written)], async ({ berth, scripted }) => {
      await berth.sandbox("a").writeFile("f", all, { progress: () => undefined });
      expect(scripted.asked.map(({ body }) => hash(body))).toEqual([hash(all), hash(all)]);
    });
    await scene([refuse("unavailable"), tell(written)], async ({ berth, scripted }) => {
      const content = { stream: pieces(1000), bytes: 1000 };
      expect((await failure(berth.sandbox("a").writeFile("f", content))).code).toBe("unavailable");
      expect(scripted.asked).toHaveLength(1);
    });
    await scene([breakOff, tell(written)], async ({ berth }) => {
      const error = await failure(berth.sandbox("a").uploadArchive(".", all));
      expect(error).toMatchObject({ code: "operation_interrupted" });
    });
  });
});

describe("bytes on their way down", () => {
  it("[SD7] that break off say so, with how many there were: what is short is never taken for whole", () =>
    scene([half], async ({ berth }) => {
      const told: Progress[] = [];
      const progress = (seen: Progress) => told.push(seen);
      const { body, size } = await berth.sandbox("a").readFile("f", { progress });
      expect(size).toBe(all.length);
      let bytes = 0;
      const reading = (async () => {
        for await (const piece of body) bytes += piece.byteLength;
      })();
      const error = await failure(reading);
      expect(bytes).toBe(all.length / 2);
      expect(error).toMatchObject({ code: "unavailable", requestId: "r", facts: { bytes } });
      expect(told.at(-1)).toEqual({ bytes, total: all.length });
    }));

  it("[SD7] that stop coming are not waited for without end, however slowly they are read", async () => {
    let isCancelled = false;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(all.subarray(0, 10)),
      cancel() {
        isCancelled = true;
      },
    });
    const download = new Download(new Response(stream), { silenceMs: 50 });
    expect((await download.next()).value).toHaveLength(10);
    const error = await failure(download.next());
    expect(error).toMatchObject({ code: "unavailable", facts: { bytes: 10 } });
    expect(error.message).toContain("nothing came for 50 ms");
    expect(isCancelled).toBe(true);
  });

  it("[SD7] are given up also where the fetch that brings them does not look at the signal", async () => {
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      cancel() {
        isCancelled = true;
      },
    });
    const fetch = async () => new Response(body);
    const berth = connect({ url: "http://127.0.0.1:1", key: "k", fetch });
    const given = new AbortController();
    const { signal } = given;
    const query = { raw: true, follow: true, stream: "stdout" } as const;
    const log = await berth.sandbox("a").processLogs("p", { ...query, signal });
    const reading = failure(log[Symbol.asyncIterator]().next());
    given.abort(new Error("enough"));
    expect(await reading).toMatchObject({ message: "enough" });
    expect(isCancelled).toBe(true);
  });

  it("[SD7] end with whoever stops reading, disposes of them unread, or gives them up", async () => {
    const stops: ((berth: Berth) => Promise<unknown>)[] = [
      async (berth) => {
        for await (const _ of await berth.sandbox("a").downloadArchive(".")) break;
      },
      async (berth) => {
        await using _unread = (await berth
          .sandbox("a")
          .downloadArchive(".")) as unknown as AsyncDisposable;
      },
      async (berth) => {
        const given = new AbortController();
        const stream = await berth.sandbox("a").watchFiles({ path: ".", signal: given.signal });
        const reading = (async () => {
          for await (const _ of stream) given.abort(new Error("enough"));
        })();
        expect(await failure(reading)).toMatchObject({ message: "enough" });
      },
    ];
    for (const stop of stops) {
      await scene([endless], async ({ berth, scripted }) => {
        await stop(berth);
        expect(scripted.asked).toHaveLength(1);
        await scripted.asked[0]?.gone;
      });
    }
  });
});
