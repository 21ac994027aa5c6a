import { getEventListeners } from "node:events";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { rejectOnAbort } from "../../../src/client/http/timing.ts";
import { BerthError, connect } from "../../../src/client/index.ts";
import { errors } from "../../../src/protocol/error-codes.ts";
import {
  connectScripted,
  neverRespond,
  type Responder,
  rejection,
  respond,
  respondError,
  unknownOutcome,
} from "./scripted-server.ts";

const plain =
  (status: number, text: string): Responder =>
  (response) => {
    response.writeHead(status, { "content-type": "text/html" });
    response.end(text);
  };

describe("the error of a refused call", () => {
  it("[SD1] is one typed error: code, facts, hint and the id that the log knows", async () => {
    const notFound = respondError("not_found", { hint: "look", names: ["a", "b"] });
    const { sandbox } = await connectScripted([notFound]);
    const error = await rejection(sandbox.get());
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
  });

  it("[SD1] may come in the body of a slow response with status 200", async () => {
    const late: Responder = (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write("   ");
      const error = { code: "operation_interrupted", message: "gone", admitted: true };
      response.end(JSON.stringify({ error, requestId: "r" }));
    };
    const { sandbox } = await connectScripted([late]);
    const error = await rejection(sandbox.exec({ command: "sleep 9" }));
    expect(error).toMatchObject({ code: "operation_interrupted", facts: { admitted: true } });
  });

  it("[PL109] is not the error inside a result: an aborted run says why", async () => {
    const error = { code: "disk_full", message: "no room" };
    const aborted = { commit: 3, outcome: "aborted", error, members: [] };
    const { berth } = await connectScripted([respond(aborted)]);
    expect(await berth.plan("p").commit()).toEqual(aborted);
  });

  it("[SD1] names the address when another server responded", async () => {
    const { sandbox, server } = await connectScripted([plain(404, "<html>")]);
    const error = await rejection(sandbox.get());
    expect(error.code).toBe("not_found");
    expect(error.message).toContain(server.url);
    expect(error.hint).toContain("url");
  });

  it("[SD1] of another server follows from the status and the call", async () => {
    const { berth, sandbox } = await connectScripted([
      plain(200, "<html>welcome"),
      plain(502, "bad gateway"),
    ]);
    expect((await rejection(berth.counts())).code).toBe("bad_request");
    const error = await rejection(sandbox.exec({ command: "make" }));
    expect(error).toMatchObject(unknownOutcome);
  });

  it("[SD1] has the nearest known code, and the original one in its facts, when this version does not know the code", async () => {
    const { sandbox } = await connectScripted([respondError("moon_in_the_way")]);
    const error = await rejection(sandbox.exec({ command: "make" }));
    expect(error).toMatchObject({ code: "bad_request", facts: { told: "moon_in_the_way" } });
  });
});

describe("a call", () => {
  it("[SD2] encodes names in its path and sends the key in a header only", async () => {
    const { berth, server } = await connectScripted([respond({}), respond({}), respond({})]);
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
  });

  it("[SD2] never shows its key in what a program prints", async () => {
    const { sdk } = await connectScripted([respondError("not_found")]);
    const sandbox = sdk.sandbox("a");
    const error = await rejection(sandbox.get());
    const shown = [sdk, sandbox, error].map((value) => inspect(value, { depth: 9 }));
    expect(shown.join("")).toContain("checkpoints");
    expect(shown.join("")).not.toContain("the key");
  });

  it("[SD2] reads a changing key for each request and refuses an invalid URL at once", async () => {
    const keys = ["one", "two"];
    const key = async () => keys.shift() ?? "";
    const { berth, server } = await connectScripted([respond({}), respond({})], { key });
    await berth.counts();
    await berth.counts();
    const sent = server.requests.map(({ headers }) => headers.authorization);
    expect(sent).toEqual(["Bearer one", "Bearer two"]);
    expect(() => connect({ url: "localhost:8787", key: "k" })).toThrow(/`url`/);
  });
});

describe("cancelling a call", () => {
  const busy = respondError("unavailable", { retryAfter: "20" });

  it("[SD5] rejects at once and closes its connection", async () => {
    const { sandbox, server } = await connectScripted([neverRespond]);
    const controller = new AbortController();
    const call = rejection(sandbox.exec({ command: "sleep 9" }, { signal: controller.signal }));
    await expect.poll(() => server.requests.length).toBe(1);
    controller.abort(new Error("enough"));
    expect(await call).toMatchObject({ message: "enough" });
    await server.requests[0]?.closed;
    expect(server.requests).toHaveLength(1);
  });

  it("[SD5] works while it waits for its next attempt", async () => {
    const { sandbox, server } = await connectScripted([busy], { clock: {} });
    const controller = new AbortController();
    const call = rejection(sandbox.get({ signal: controller.signal }));
    await expect.poll(() => server.requests.length).toBe(1);
    await server.requests[0]?.closed;
    controller.abort(new Error("enough"));
    expect(await call).toMatchObject({ message: "enough" });
  });

  it("[SD5] works for every method, and for all calls of a handle", async () => {
    const { berth, sandbox, sdk, server } = await connectScripted([respond({})]);
    const signal = AbortSignal.abort(new Error("before"));
    const calls = [
      sandbox.get({ signal }),
      sandbox.exec({ command: "true" }, { signal }),
      sandbox.process("p", { signal }),
      sandbox.signalProcess("p", "SIGTERM", { signal }),
      sandbox.writeStdin("p", new Uint8Array(1), { signal, offset: 0 }),
      sandbox.patchMetadata({ signal: "kept" }, { signal }),
      sandbox.readFile("f", { signal }),
      berth.list({ signal }),
      sdk.sandbox("a").with({ signal }).touch(),
      sdk.with({ signal }).sandbox("b").files.list(),
    ];
    for (const call of calls) expect(await rejection(call)).toMatchObject({ message: "before" });
    expect(server.requests).toEqual([]);
    const fields = { signal: "kept", answerWithinMs: "too" };
    await sandbox.patchMetadata(fields);
    expect(JSON.parse(String(server.requests[0]?.body))).toEqual(fields);
  });

  it("[SD5] works while the `key` function is pending; nothing is sent then", async () => {
    const pendingKeys: ((key: string) => void)[] = [];
    const key = () => new Promise<string>((resolve) => pendingKeys.push(resolve));
    const { sandbox, server } = await connectScripted([], { key, retry: { retries: 0 } });
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

  it("[LV20] leaves no listener on the signal of a terminal that it could not attach to", async () => {
    const responders = [respondError("not_found"), respond({ ticket: "t" })];
    const { sdk } = await connectScripted(responders);
    const { signal } = new AbortController();
    const attaching = sdk.sandbox("a").terminal("main").attach({ signal });
    expect(await rejection(attaching)).toMatchObject({ code: "not_found" });
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("[SD5] may limit the time of a response: afterwards the outcome of a write is unknown", async () => {
    const { sandbox, server } = await connectScripted([neverRespond]);
    const call = sandbox.exec({ command: "make" }, { answerWithinMs: 100 });
    expect(await rejection(call)).toMatchObject(unknownOutcome);
    await server.requests[0]?.closed;
  });

  it("[SD5] may limit the time of a response also while it comes; a read did nothing", async () => {
    const trickle: Responder = (response) => {
      const interval = setInterval(() => response.write(" "), 10);
      response.on("close", () => clearInterval(interval));
    };
    const { sandbox, server } = await connectScripted([trickle]);
    const error = await rejection(sandbox.get({ answerWithinMs: 200 }));
    expect(error).toMatchObject({ code: "unavailable" });
    expect(error.message).toMatch(/did not respond within \d+ ms/);
    await server.requests[0]?.closed;
  });
});
