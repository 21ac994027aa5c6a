import { getEventListeners } from "node:events";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { rejectOnAbort } from "../../../src/client/http/timing.ts";
import { type Berth, BerthError, connect, errors } from "../../../src/client/index.ts";
import {
  neverRespond,
  type Responder,
  respond,
  respondError,
  ScriptedServer,
} from "./scripted-server.ts";

type Setup = { berth: Berth; server: ScriptedServer };

async function withServer(
  answers: Responder[],
  test: (setup: Setup) => Promise<void>,
): Promise<void> {
  await using server = await ScriptedServer.start(...answers);
  await test({ berth: connect({ url: `${server.url}/`, key: "the key" }), server });
}

const rejection = (call: Promise<unknown>) =>
  call.then(
    (result) => Promise.reject(new Error(`resolved with ${JSON.stringify(result)}`)),
    (thrown) => thrown as BerthError,
  );

const plain =
  (status: number, text: string): Responder =>
  (response) => {
    response.writeHead(status, { "content-type": "text/html" });
    response.end(text);
  };

describe("the error of a refused call", () => {
  it("[SD1] is one typed error: code, facts, hint and the id that the log knows", () =>
    withServer(
      [respondError("not_found", { hint: "look", names: ["a", "b"] })],
      async ({ berth }) => {
        const error = await rejection(berth.sandbox("a").get());
        expect(error).toBeInstanceOf(BerthError);
        expect(error).toMatchObject({
          code: "not_found",
          message: "as the test says",
          hint: "look",
          facts: { names: ["a", "b"] },
          requestId: "of-the-server",
        });
        expect(error.facts).not.toHaveProperty("retryable");
        expect(errors[error.code].status).toBe(404);
      },
    ));

  it("[SD1] may come in the body of a slow response with status 200", () => {
    const late: Responder = (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write("   ");
      const error = { code: "operation_interrupted", message: "gone", admitted: true };
      response.end(JSON.stringify({ error, requestId: "r" }));
    };
    return withServer([late], async ({ berth }) => {
      const error = await rejection(berth.sandbox("a").exec({ command: "sleep 9" }));
      expect(error).toMatchObject({ code: "operation_interrupted", facts: { admitted: true } });
    });
  });

  it("[PL109] is not the error inside a result: an aborted run says why", () => {
    const aborted: Responder = (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const error = { code: "disk_full", message: "no room" };
      response.end(JSON.stringify({ commit: 3, outcome: "aborted", error, members: [] }));
    };
    return withServer([aborted], async ({ berth }) => {
      expect(await berth.plan("p").commit()).toMatchObject({
        outcome: "aborted",
        error: { code: "disk_full" },
      });
    });
  });

  it("[SD1] names the address when another server responded", async () => {
    await withServer([plain(404, "<html>")], async ({ berth, server }) => {
      const error = await rejection(berth.sandbox("a").get());
      expect(error.code).toBe("not_found");
      expect(error.message).toContain(server.url);
      expect(error.hint).toContain("url");
    });
    await withServer([plain(200, "<html>welcome")], async ({ berth }) => {
      expect((await rejection(berth.counts())).code).toBe("bad_request");
    });
    await withServer([plain(502, "bad gateway")], async ({ berth }) => {
      const error = await rejection(berth.sandbox("a").exec({ command: "make" }));
      expect(error).toMatchObject({
        code: "operation_interrupted",
        facts: { admitted: "unknown" },
      });
    });
  });

  it("[SD1] has the nearest known code, and the original one in its facts, when this version does not know the code", () =>
    withServer([respondError("moon_in_the_way")], async ({ berth }) => {
      const error = await rejection(berth.sandbox("a").exec({ command: "make" }));
      expect(error).toMatchObject({ code: "bad_request", facts: { told: "moon_in_the_way" } });
    }));
});

describe("a call", () => {
  it("[SD2] encodes names in its path and sends the key in a header only", () =>
    withServer([respond({}), respond({}), respond({})], async ({ berth, server }) => {
      await berth.sandbox("../../x?y").process("a/b#c");
      await berth.sandbox("..").get();
      await berth.list({ metadata: ["a=b c", "d=&"], limit: 2 });
      expect(server.requests.map(({ path }) => path)).toEqual([
        "/v1/sandboxes/..%2F..%2Fx%3Fy/processes/a%2Fb%23c",
        "/v1/sandboxes/%00",
        "/v1/sandboxes?metadata=a%3Db+c&metadata=d%3D%26&limit=2",
      ]);
      for (const { headers } of server.requests) {
        expect(headers.authorization).toBe("Bearer the key");
        expect(headers["berth-request-id"]).toMatch(/^[0-9a-f]{24}$/);
      }
    }));

  it("[SD2] never shows its key in what a program prints", () =>
    withServer([respondError("not_found")], async ({ berth }) => {
      const error = await rejection(berth.sandbox("a").get());
      const shown = [berth, berth.sandbox("a"), error].map((value) => inspect(value, { depth: 9 }));
      expect(shown.join("")).toContain("exec");
      expect(shown.join("")).not.toContain("the key");
    }));

  it("[SD2] reads a changing key for each request and refuses an invalid URL at once", async () => {
    await using server = await ScriptedServer.start(respond({}), respond({}));
    const keys = ["one", "two"];
    const berth = connect({ url: server.url, key: async () => keys.shift() ?? "" });
    await berth.counts();
    await berth.counts();
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer one",
      "Bearer two",
    ]);
    expect(() => connect({ url: "localhost:8787", key: "k" })).toThrow(/`url`/);
  });
});

describe("cancelling a call", () => {
  it("[SD5] rejects at once and closes its connection", () =>
    withServer([neverRespond], async ({ berth, server }) => {
      const controller = new AbortController();
      const call = rejection(
        berth.sandbox("a").exec({ command: "sleep 9" }, { signal: controller.signal }),
      );
      await expect.poll(() => server.requests.length).toBe(1);
      controller.abort(new Error("enough"));
      expect(await call).toMatchObject({ message: "enough" });
      await server.requests[0]?.closed;
      expect(server.requests).toHaveLength(1);
    }));

  it("[SD5] works while it waits for its next attempt", () =>
    withServer([respondError("unavailable", { retryAfter: "20" })], async ({ berth, server }) => {
      const controller = new AbortController();
      const call = rejection(berth.sandbox("a").get({ signal: controller.signal }));
      await expect.poll(() => server.requests.length).toBe(1);
      await server.requests[0]?.closed;
      controller.abort(new Error("enough"));
      expect(await call).toMatchObject({ message: "enough" });
    }));

  it("[SD5] works for every method, and for all calls of a handle", () =>
    withServer([respond({})], async ({ berth, server }) => {
      const signal = AbortSignal.abort(new Error("before"));
      const sandbox = berth.sandbox("a");
      const calls = [
        sandbox.get({ signal }),
        sandbox.exec({ command: "true" }, { signal }),
        sandbox.process("p", { signal }),
        sandbox.signalProcess("p", "SIGTERM", { signal }),
        sandbox.writeStdin("p", new Uint8Array(1), { signal, offset: 0 }),
        sandbox.patchMetadata({ signal: "kept" }, { signal }),
        sandbox.readFile("f", { signal }),
        berth.list({ signal }),
        sandbox.with({ signal }).touch(),
        berth.with({ signal }).sandbox("b").get(),
      ];
      for (const call of calls) expect(await rejection(call)).toMatchObject({ message: "before" });
      expect(server.requests).toEqual([]);
      await sandbox.patchMetadata({ signal: "kept", answerWithinMs: "too" });
      expect(JSON.parse(String(server.requests[0]?.body))).toEqual({
        signal: "kept",
        answerWithinMs: "too",
      });
    }));

  it("[SD5] works while the `key` function is pending; nothing is sent then", async () => {
    await using server = await ScriptedServer.start();
    const pendingKeys: ((key: string) => void)[] = [];
    const key = () => new Promise<string>((resolve) => pendingKeys.push(resolve));
    const sandbox = connect({ url: server.url, key, retry: { retries: 0 } }).sandbox("a");
    const controller = new AbortController();
    const aborted = rejection(sandbox.exec({ command: "make" }, { signal: controller.signal }));
    const late = rejection(sandbox.exec({ command: "make" }, { answerWithinMs: 50 }));
    await expect.poll(() => pendingKeys.length).toBe(2);
    controller.abort(new Error("enough"));
    expect(await aborted).toMatchObject({ message: "enough" });
    expect(await late).toMatchObject({ code: "unavailable", hint: expect.stringContaining("key") });
    for (const resolve of pendingKeys) resolve("k");
    expect(server.requests).toEqual([]);
  });

  it("[SD5] rejects with the signal's reason, and handles what rejects afterwards", async () => {
    const controller = new AbortController();
    const result = Promise.withResolvers<never>();
    controller.abort(new Error("enough"));
    const waits = rejection(rejectOnAbort(result.promise, controller.signal));
    // Vitest fails on an unhandled rejection.
    result.reject(new Error("the connection is gone"));
    expect(await waits).toMatchObject({ message: "enough" });
    await new Promise((resolve) => setTimeout(resolve));
  });

  it("[LV20] leaves no listener on the signal of a terminal that it could not attach to", () =>
    withServer([respondError("not_found"), respond({ ticket: "t" })], async ({ berth }) => {
      const { signal } = new AbortController();
      const attaching = berth.sandbox("a").attachTerminal("main", { signal });
      expect(await rejection(attaching)).toMatchObject({ code: "not_found" });
      expect(getEventListeners(signal, "abort")).toHaveLength(0);
    }));

  it("[SD5] may limit the time of a response: afterwards the outcome of a write is unknown, a read did nothing", async () => {
    await withServer([neverRespond], async ({ berth, server }) => {
      const call = berth.sandbox("a").exec({ command: "make" }, { answerWithinMs: 100 });
      expect(await rejection(call)).toMatchObject({
        code: "operation_interrupted",
        facts: { admitted: "unknown" },
      });
      await server.requests[0]?.closed;
    });
    const trickle: Responder = (response) => {
      const interval = setInterval(() => response.write(" "), 10);
      response.on("close", () => clearInterval(interval));
    };
    await withServer([trickle], async ({ berth, server }) => {
      const error = await rejection(berth.sandbox("a").get({ answerWithinMs: 200 }));
      expect(error).toMatchObject({ code: "unavailable" });
      expect(error.message).toMatch(/did not respond within \d+ ms/);
      await server.requests[0]?.closed;
    });
  });
});
