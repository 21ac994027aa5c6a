import { describe, expect, it } from "vitest";
import {
  type Connected,
  connectScripted,
  disconnect,
  type Responder,
  rejection,
  respond,
  respondError,
  unknownOutcome,
} from "./scripted-server.ts";

const busy = respondError("unavailable");
const execResult = { execId: "e", exitCode: 0 };

/** Ends after the keepalive bytes of a slow response. */
const truncated: Responder = (response) => {
  response.writeHead(200, { "berth-request-id": "r" });
  response.end("  ");
};

describe("a retry", () => {
  it("[SD3] follows any refusal before the call took effect, after the requested delay", async () => {
    const { sandbox, server, slept } = await connectScripted([
      respondError("unavailable"),
      respondError("too_many", { retryAfter: "3" }),
      respondError("unavailable"),
      respond(execResult),
    ]);
    expect(await sandbox.exec({ command: "true" })).toEqual(execResult);
    expect(server.requests.map(({ body }) => String(body))).toEqual(
      Array(4).fill('{"command":"true"}'),
    );
    expect(slept).toEqual([200, 3000, 800]);
  });

  it("[SD3] is limited in number", async () => {
    const { berth, server, slept } = await connectScripted(Array(9).fill(busy));
    expect((await rejection(berth.counts())).code).toBe("unavailable");
    expect(server.requests).toHaveLength(5);
    expect(slept).toEqual([200, 400, 800, 1600]);
  });

  it("[SD3] is limited in time", async () => {
    const tooLate = respondError("unavailable", { retryAfter: "31" });
    const { berth, server, slept } = await connectScripted([tooLate, respond(execResult)]);
    await rejection(berth.counts());
    expect(server.requests).toHaveLength(1);
    expect(slept).toEqual([]);
  });

  it("[SD3] does not follow a refusal that others decide: a held lease, a full queue", async () => {
    for (const code of ["lease_held", "queue_full", "not_found", "internal"]) {
      const { sandbox, server } = await connectScripted([
        respondError(code, { holder: "ci" }),
        respond(execResult),
      ]);
      const error = await rejection(sandbox.exec({ command: "true" }));
      expect(error).toMatchObject({ code, facts: { holder: "ci" } });
      expect(server.requests).toHaveLength(1);
    }
  });
});

describe("a call whose response is lost", () => {
  it("[SD4] is not sent again when it may have run, and its outcome is `unknown`", async () => {
    const { sandbox, server } = await connectScripted([disconnect, respond(execResult)]);
    const error = await rejection(sandbox.exec({ command: "make" }));
    expect(error.code).toBe("operation_interrupted");
    expect(error.facts).toEqual({ admitted: "unknown" });
    expect(error.requestId).toBe(server.requests[0]?.headers["berth-request-id"]);
    expect(server.requests).toHaveLength(1);
  });

  it("[SD4] is sent again with its idempotency key, which lets it run only once", async () => {
    const { sandbox, server } = await connectScripted([disconnect, respond(execResult)]);
    const options = { idempotencyKey: "build-42" };
    expect(await sandbox.exec({ command: "make" }, options)).toEqual(execResult);
    const keys = server.requests.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toEqual(["build-42", "build-42"]);
  });

  it("[SD4] is sent again when it only reads, or when repeating it has no effect", async () => {
    const harmless: ((connected: Connected) => Promise<unknown>)[] = [
      ({ berth }) => berth.list(),
      ({ sandbox }) => sandbox.get(),
      ({ sandbox }) => sandbox.touch(),
      ({ sandbox }) => sandbox.destroy(),
      ({ sandbox }) => sandbox.renewLease("t"),
      ({ sandbox }) => sandbox.releaseLease("t"),
      ({ sandbox }) => sandbox.acquireLease({ ticket: "sixteen-or-more-chars" }),
      ({ sandbox }) => sandbox.writeStdin("p", new Uint8Array(3), { offset: 0 }),
      ({ sandbox }) => sandbox.createTerminal({ id: "main" }),
    ];
    for (const call of harmless) {
      const connected = await connectScripted([disconnect, respond(execResult)]);
      expect(await call(connected)).toEqual(execResult);
      expect(connected.server.requests).toHaveLength(2);
    }
    const harmful: ((connected: Connected) => Promise<unknown>)[] = [
      ({ sandbox }) => sandbox.pause(),
      ({ sandbox }) => sandbox.acquireLease(),
      ({ sandbox }) => sandbox.writeStdin("p", new Uint8Array(3)),
      ({ sandbox }) => sandbox.createTerminal(),
      // The program may have ended and freed the id.
      ({ sandbox }) => sandbox.createTerminal({ id: "main", argv: ["make"] }),
      ({ sandbox }) => sandbox.makeCheckpoint(),
      ({ sandbox }) => sandbox.endProcess("p"),
      ({ sandbox }) => sandbox.writeFile("f", new Uint8Array(3)),
      ({ sandbox }) => sandbox.patchMetadata({ a: "b" }),
    ];
    for (const call of harmful) {
      const connected = await connectScripted([disconnect, respond(execResult)]);
      expect(await rejection(call(connected))).toMatchObject({ facts: { admitted: "unknown" } });
      expect(connected.server.requests).toHaveLength(1);
    }
  });

  it("[SD4] is not sent again when its connection was open before the host became unreachable", async () => {
    for (const [syscall, attempts, code] of [
      ["read", 1, "operation_interrupted"],
      ["write", 1, "operation_interrupted"],
      ["connect", 5, "unavailable"],
    ] as const) {
      let sent = 0;
      const fetch = async () => {
        sent += 1;
        const cause = Object.assign(new Error("out of reach"), { code: "EHOSTUNREACH", syscall });
        throw new TypeError("fetch failed", { cause });
      };
      const { sandbox } = await connectScripted([], { fetch });
      expect(await rejection(sandbox.exec({ command: "make" }))).toMatchObject({ code });
      expect([syscall, sent]).toEqual([syscall, attempts]);
    }
  });

  it("[SD4] has an unknown outcome when the response ends early without an error, as over a binding", async () => {
    const { sandbox, server } = await connectScripted([truncated, truncated, respond(execResult)]);
    const error = await rejection(sandbox.exec({ command: "make" }));
    expect(error).toMatchObject(unknownOutcome);
    expect(server.requests).toHaveLength(1);
    const options = { idempotencyKey: "k" };
    expect(await sandbox.exec({ command: "make" }, options)).toEqual(execResult);
  });

  it("[SD4] leaves no second sandbox after a create: its generated key is sent again", async () => {
    const { berth, server } = await connectScripted([
      disconnect,
      respond({ id: "a" }),
      respond({ id: "b" }),
    ]);
    await berth.create();
    await berth.create();
    const [first, second, third] = server.requests.map(({ headers }) => headers["idempotency-key"]);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  it("[SD4] reports `unavailable` when it was never sent", async () => {
    const { sandbox, server, slept } = await connectScripted([]);
    server.stop();
    const error = await rejection(sandbox.exec({ command: "make" }));
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(server.url);
    expect(error.message).toContain("ECONNREFUSED");
    expect(slept).toHaveLength(4);
  });

  it("[SD4] stays `operation_interrupted` when later attempts are refused", async () => {
    const { sandbox, server } = await connectScripted([
      disconnect,
      ...Array(4).fill(respondError("unavailable")),
    ]);
    const call = sandbox.exec({ command: "make" }, { idempotencyKey: "k" });
    const error = await rejection(call);
    expect(error.code).toBe("operation_interrupted");
    expect(error.facts).toEqual({ admitted: "unknown" });
    expect(server.requests).toHaveLength(5);
  });

  it("[SD4] is sent again when the server reports an unknown outcome, not when it reports that the call ran", async () => {
    const key = { idempotencyKey: "k" };
    for (const [admitted, sent] of [
      ["unknown", 2],
      [false, 2],
      [true, 1],
    ] as const) {
      const interrupted = respondError("operation_interrupted", { admitted });
      const { sandbox, server } = await connectScripted([interrupted, respond(execResult)]);
      await sandbox.exec({ command: "make" }, key).catch(() => undefined);
      expect(server.requests).toHaveLength(sent);
    }
  });
});
