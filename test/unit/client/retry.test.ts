import { describe, expect, it } from "vitest";
import { type Berth, connect } from "../../../src/client/index.ts";
import type { BerthError } from "../../../src/protocol/error-codes.ts";
import { recordingClock } from "./recording-clock.ts";
import {
  disconnect,
  type Responder,
  respond,
  respondError,
  ScriptedServer,
} from "./scripted-server.ts";

type Setup = { berth: Berth; server: ScriptedServer; slept: number[] };

async function withServer(
  answers: Responder[],
  test: (setup: Setup) => Promise<void>,
): Promise<void> {
  await using server = await ScriptedServer.start(...answers);
  const { clock, slept } = recordingClock();
  await test({ berth: connect({ url: server.url, key: "k", clock }), server, slept });
}

const rejection = (call: Promise<unknown>) =>
  call.then(
    (result) => Promise.reject(new Error(`resolved with ${JSON.stringify(result)}`)),
    (thrown) => thrown as BerthError,
  );

const execResult = { execId: "e", exitCode: 0 };

/** Ends after the keepalive bytes of a slow response. */
const truncated: Responder = (response) => {
  response.writeHead(200, { "berth-request-id": "r" });
  response.end("  ");
};

describe("a retry", () => {
  it("[SD3] follows any refusal before the call took effect, after the requested delay", () =>
    withServer(
      [
        respondError("unavailable"),
        respondError("too_many", { retryAfter: "3" }),
        respondError("unavailable"),
        respond(execResult),
      ],
      async ({ berth, server, slept }) => {
        expect(await berth.sandbox("a").exec({ command: "true" })).toEqual(execResult);
        expect(server.requests.map(({ body }) => String(body))).toEqual(
          Array(4).fill('{"command":"true"}'),
        );
        expect(slept).toEqual([200, 3000, 800]);
      },
    ));

  it("[SD3] is limited in number and in time", async () => {
    await withServer(
      Array(9).fill(respondError("unavailable")),
      async ({ berth, server, slept }) => {
        const { code } = await rejection(berth.counts());
        expect(code).toBe("unavailable");
        expect(server.requests).toHaveLength(5);
        expect(slept).toEqual([200, 400, 800, 1600]);
      },
    );
    const tooLate = respondError("unavailable", { retryAfter: "31" });
    await withServer([tooLate, respond(execResult)], async ({ berth, server, slept }) => {
      await rejection(berth.counts());
      expect(server.requests).toHaveLength(1);
      expect(slept).toEqual([]);
    });
  });

  it("[SD3] does not follow a refusal that others decide: a held lease, a full queue", async () => {
    for (const code of ["lease_held", "queue_full", "not_found", "internal"]) {
      await withServer(
        [respondError(code, { holder: "ci" }), respond(execResult)],
        async ({ berth, server }) => {
          const error = await rejection(berth.sandbox("a").exec({ command: "true" }));
          expect(error).toMatchObject({ code, facts: { holder: "ci" } });
          expect(server.requests).toHaveLength(1);
        },
      );
    }
  });
});

describe("a call whose response is lost", () => {
  it("[SD4] is not sent again when it may have run, and its outcome is `unknown`", () =>
    withServer([disconnect, respond(execResult)], async ({ berth, server }) => {
      const error = await rejection(berth.sandbox("a").exec({ command: "make" }));
      expect(error.code).toBe("operation_interrupted");
      expect(error.facts).toEqual({ admitted: "unknown" });
      expect(error.requestId).toBe(server.requests[0]?.headers["berth-request-id"]);
      expect(server.requests).toHaveLength(1);
    }));

  it("[SD4] is sent again with its idempotency key, which lets it run only once", () =>
    withServer([disconnect, respond(execResult)], async ({ berth, server }) => {
      const options = { idempotencyKey: "build-42" };
      expect(await berth.sandbox("a").exec({ command: "make" }, options)).toEqual(execResult);
      const keys = server.requests.map(({ headers }) => headers["idempotency-key"]);
      expect(keys).toEqual(["build-42", "build-42"]);
    }));

  it("[SD4] is sent again when it only reads, or when repeating it has no effect", async () => {
    const harmless: ((berth: Berth) => Promise<unknown>)[] = [
      (berth) => berth.list(),
      (berth) => berth.sandbox("a").get(),
      (berth) => berth.sandbox("a").touch(),
      (berth) => berth.sandbox("a").destroy(),
      (berth) => berth.sandbox("a").renewLease("t"),
      (berth) => berth.sandbox("a").releaseLease("t"),
      (berth) => berth.sandbox("a").acquireLease({ ticket: "sixteen-or-more-chars" }),
      (berth) => berth.sandbox("a").writeStdin("p", new Uint8Array(3), { offset: 0 }),
      (berth) => berth.sandbox("a").createTerminal({ id: "main" }),
    ];
    for (const call of harmless) {
      await withServer([disconnect, respond(execResult)], async ({ berth, server }) => {
        expect(await call(berth)).toEqual(execResult);
        expect(server.requests).toHaveLength(2);
      });
    }
    const harmful: ((berth: Berth) => Promise<unknown>)[] = [
      (berth) => berth.sandbox("a").pause(),
      (berth) => berth.sandbox("a").acquireLease(),
      (berth) => berth.sandbox("a").writeStdin("p", new Uint8Array(3)),
      (berth) => berth.sandbox("a").createTerminal(),
      // The program may have ended and freed the id.
      (berth) => berth.sandbox("a").createTerminal({ id: "main", argv: ["make"] }),
      (berth) => berth.sandbox("a").makeCheckpoint(),
      (berth) => berth.sandbox("a").endProcess("p"),
      (berth) => berth.sandbox("a").writeFile("f", new Uint8Array(3)),
      (berth) => berth.sandbox("a").patchMetadata({ a: "b" }),
    ];
    for (const call of harmful) {
      await withServer([disconnect, respond(execResult)], async ({ berth, server }) => {
        expect(await rejection(call(berth))).toMatchObject({ facts: { admitted: "unknown" } });
        expect(server.requests).toHaveLength(1);
      });
    }
  });

  it("[SD4] is not sent again when its connection was open before the host became unreachable", async () => {
    for (const syscall of ["read", "write", "connect"]) {
      let sent = 0;
      const fetch = async () => {
        sent += 1;
        throw new TypeError("fetch failed", {
          cause: Object.assign(new Error("out of reach"), { code: "EHOSTUNREACH", syscall }),
        });
      };
      const { clock } = recordingClock();
      const berth = connect({ url: "http://127.0.0.1:1", key: "k", clock, fetch });
      const { code } = await rejection(berth.sandbox("a").exec({ command: "make" }));
      const never = syscall === "connect";
      expect([syscall, sent, code]).toEqual([
        syscall,
        never ? 5 : 1,
        never ? "unavailable" : "operation_interrupted",
      ]);
    }
  });

  it("[SD4] has an unknown outcome when the response ends early without an error, as over a binding", () =>
    withServer([truncated, truncated, respond(execResult)], async ({ berth, server }) => {
      const error = await rejection(berth.sandbox("a").exec({ command: "make" }));
      expect(error).toMatchObject({
        code: "operation_interrupted",
        facts: { admitted: "unknown" },
      });
      expect(server.requests).toHaveLength(1);
      const options = { idempotencyKey: "k" };
      expect(await berth.sandbox("a").exec({ command: "make" }, options)).toEqual(execResult);
    }));

  it("[SD4] leaves no second sandbox after a create: its generated key is sent again", () =>
    withServer(
      [disconnect, respond({ id: "a" }), respond({ id: "b" })],
      async ({ berth, server }) => {
        await berth.create();
        await berth.create();
        const [first, second, third] = server.requests.map(
          ({ headers }) => headers["idempotency-key"],
        );
        expect(first).toMatch(/^[0-9a-f]{32}$/);
        expect(second).toBe(first);
        expect(third).not.toBe(first);
      },
    ));

  it("[SD4] reports `unavailable` when it was never sent", async () => {
    const { url } = await ScriptedServer.start().then(async (server) => {
      const { url } = server;
      await server[Symbol.asyncDispose]();
      return { url };
    });
    const { clock, slept } = recordingClock();
    const berth = connect({ url, key: "k", clock });
    const error = await rejection(berth.sandbox("a").exec({ command: "make" }));
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(url);
    expect(error.message).toContain("ECONNREFUSED");
    expect(slept).toHaveLength(4);
  });

  it("[SD4] stays `operation_interrupted` when later attempts are refused", () =>
    withServer(
      [disconnect, ...Array(4).fill(respondError("unavailable"))],
      async ({ berth, server }) => {
        const call = berth.sandbox("a").exec({ command: "make" }, { idempotencyKey: "k" });
        const error = await rejection(call);
        expect(error.code).toBe("operation_interrupted");
        expect(error.facts).toEqual({ admitted: "unknown" });
        expect(server.requests).toHaveLength(5);
      },
    ));

  it("[SD4] is sent again when the server reports an unknown outcome, not when it reports that the call ran", async () => {
    const key = { idempotencyKey: "k" };
    for (const [admitted, sent] of [
      ["unknown", 2],
      [false, 2],
      [true, 1],
    ] as const) {
      const interrupted = respondError("operation_interrupted", { admitted });
      await withServer([interrupted, respond(execResult)], async ({ berth, server }) => {
        await berth
          .sandbox("a")
          .exec({ command: "make" }, key)
          .catch(() => undefined);
        expect(server.requests).toHaveLength(sent);
      });
    }
  });
});
