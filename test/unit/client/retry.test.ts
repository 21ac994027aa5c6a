import { describe, expect, it } from "vitest";
import { type Berth, connect } from "../../../src/client/index.ts";
import type { BerthError } from "../../../src/protocol/error-codes.ts";
import { noted } from "./clocks.ts";
import { type Answer, breakOff, refuse, Scripted, tell } from "./scripted.ts";

type Scene = { berth: Berth; scripted: Scripted; slept: number[] };

async function scene(answers: Answer[], play: (scene: Scene) => Promise<void>): Promise<void> {
  await using scripted = await Scripted.answering(...answers);
  const { clock, slept } = noted();
  await play({ berth: connect({ url: scripted.url, key: "k", clock }), scripted, slept });
}

const failure = (call: Promise<unknown>) =>
  call.then(
    (answer) => Promise.reject(new Error(`answered ${JSON.stringify(answer)}`)),
    (thrown) => thrown as BerthError,
  );

const ran = { execId: "e", exitCode: 0 };

/** The signs of life of a long answer, and its end. */
const early: Answer = (response) => {
  response.writeHead(200, { "berth-request-id": "r" });
  response.end("  ");
};

describe("what is sent again", () => {
  it("[SD3] is any call that was refused before anything was done, after the time that was asked for", () =>
    scene(
      [
        refuse("unavailable"),
        refuse("too_many", { retryAfter: "3" }),
        refuse("unavailable"),
        tell(ran),
      ],
      async ({ berth, scripted, slept }) => {
        expect(await berth.sandbox("a").exec({ command: "true" })).toEqual(ran);
        expect(scripted.asked.map(({ body }) => String(body))).toEqual(
          Array(4).fill('{"command":"true"}'),
        );
        expect(slept).toEqual([200, 3000, 800]);
      },
    ));

  it("[SD3] is bounded in number and in time", async () => {
    await scene(Array(9).fill(refuse("unavailable")), async ({ berth, scripted, slept }) => {
      const { code } = await failure(berth.counts());
      expect(code).toBe("unavailable");
      expect(scripted.asked).toHaveLength(5);
      expect(slept).toEqual([200, 400, 800, 1600]);
    });
    const later = refuse("unavailable", { retryAfter: "31" });
    await scene([later, tell(ran)], async ({ berth, scripted, slept }) => {
      await failure(berth.counts());
      expect(scripted.asked).toHaveLength(1);
      expect(slept).toEqual([]);
    });
  });

  it("[SD3] is not what somebody else decides: who holds the lease, a full queue", async () => {
    for (const code of ["lease_held", "queue_full", "not_found", "internal"]) {
      await scene([refuse(code, { holder: "ci" }), tell(ran)], async ({ berth, scripted }) => {
        const error = await failure(berth.sandbox("a").exec({ command: "true" }));
        expect(error).toMatchObject({ code, facts: { holder: "ci" } });
        expect(scripted.asked).toHaveLength(1);
      });
    }
  });
});

describe("a call whose answer is lost", () => {
  it("[SD4] is never sent again where it may have run, and nobody pretends to know", () =>
    scene([breakOff, tell(ran)], async ({ berth, scripted }) => {
      const error = await failure(berth.sandbox("a").exec({ command: "make" }));
      expect(error.code).toBe("operation_interrupted");
      expect(error.facts).toEqual({ admitted: "unknown" });
      expect(error.requestId).toBe(scripted.asked[0]?.headers["berth-request-id"]);
      expect(scripted.asked).toHaveLength(1);
    }));

  it("[SD4] is sent again with its key, which lets it run only once", () =>
    scene([breakOff, tell(ran)], async ({ berth, scripted }) => {
      const options = { idempotencyKey: "build-42" };
      expect(await berth.sandbox("a").exec({ command: "make" }, options)).toEqual(ran);
      const keys = scripted.asked.map(({ headers }) => headers["idempotency-key"]);
      expect(keys).toEqual(["build-42", "build-42"]);
    }));

  it("[SD4] is sent again where it only looks, or does what it did", async () => {
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
      await scene([breakOff, tell(ran)], async ({ berth, scripted }) => {
        expect(await call(berth)).toEqual(ran);
        expect(scripted.asked).toHaveLength(2);
      });
    }
    const harmful: ((berth: Berth) => Promise<unknown>)[] = [
      (berth) => berth.sandbox("a").pause(),
      (berth) => berth.sandbox("a").acquireLease(),
      (berth) => berth.sandbox("a").writeStdin("p", new Uint8Array(3)),
      (berth) => berth.sandbox("a").createTerminal(),
      // It may have ended, and freed its id.
      (berth) => berth.sandbox("a").createTerminal({ id: "main", argv: ["make"] }),
      (berth) => berth.sandbox("a").makeCheckpoint(),
      (berth) => berth.sandbox("a").endProcess("p"),
      (berth) => berth.sandbox("a").writeFile("f", new Uint8Array(3)),
      (berth) => berth.sandbox("a").patchMetadata({ a: "b" }),
    ];
    for (const call of harmful) {
      await scene([breakOff, tell(ran)], async ({ berth, scripted }) => {
        expect(await failure(call(berth))).toMatchObject({ facts: { admitted: "unknown" } });
        expect(scripted.asked).toHaveLength(1);
      });
    }
  });

  it("[SD4] is not sent again where its connection stood, and then its host went out of reach", async () => {
    for (const syscall of ["read", "write", "connect"]) {
      let sent = 0;
      const fetch = async () => {
        sent += 1;
        throw new TypeError("fetch failed", {
          cause: Object.assign(new Error("out of reach"), { code: "EHOSTUNREACH", syscall }),
        });
      };
      const { clock } = noted();
      const berth = connect({ url: "http://127.0.0.1:1", key: "k", clock, fetch });
      const { code } = await failure(berth.sandbox("a").exec({ command: "make" }));
      const never = syscall === "connect";
      expect([syscall, sent, code]).toEqual([
        syscall,
        never ? 5 : 1,
        never ? "unavailable" : "operation_interrupted",
      ]);
    }
  });

  it("[SD4] is unknown too where it ends early without a sign of it, as over a binding", () =>
    scene([early, early, tell(ran)], async ({ berth, scripted }) => {
      const error = await failure(berth.sandbox("a").exec({ command: "make" }));
      expect(error).toMatchObject({
        code: "operation_interrupted",
        facts: { admitted: "unknown" },
      });
      expect(scripted.asked).toHaveLength(1);
      const again = { idempotencyKey: "k" };
      expect(await berth.sandbox("a").exec({ command: "make" }, again)).toEqual(ran);
    }));

  it("[SD4] of a create leaves no second sandbox: it is sent again with a key that was drawn for it", () =>
    scene([breakOff, tell({ id: "a" }), tell({ id: "b" })], async ({ berth, scripted }) => {
      await berth.create();
      await berth.create();
      const [first, second, third] = scripted.asked.map(
        ({ headers }) => headers["idempotency-key"],
      );
      expect(first).toMatch(/^[0-9a-f]{32}$/);
      expect(second).toBe(first);
      expect(third).not.toBe(first);
    }));

  it("[SD4] that never left says that nothing was done", async () => {
    const { url } = await Scripted.answering().then(async (scripted) => {
      const { url } = scripted;
      await scripted[Symbol.asyncDispose]();
      return { url };
    });
    const { clock, slept } = noted();
    const berth = connect({ url, key: "k", clock });
    const error = await failure(berth.sandbox("a").exec({ command: "make" }));
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(url);
    expect(error.message).toContain("ECONNREFUSED");
    expect(slept).toHaveLength(4);
  });

  it("[SD4] is not told as one that did nothing because the later ones did nothing", () =>
    scene([breakOff, ...Array(4).fill(refuse("unavailable"))], async ({ berth, scripted }) => {
      const call = berth.sandbox("a").exec({ command: "make" }, { idempotencyKey: "k" });
      const error = await failure(call);
      expect(error.code).toBe("operation_interrupted");
      expect(error.facts).toEqual({ admitted: "unknown" });
      expect(scripted.asked).toHaveLength(5);
    }));

  it("[SD4] is sent again after what the server does not know either, but not after what it knows", async () => {
    const key = { idempotencyKey: "k" };
    for (const [admitted, sent] of [
      ["unknown", 2],
      [false, 2],
      [true, 1],
    ] as const) {
      const interrupted = refuse("operation_interrupted", { admitted });
      await scene([interrupted, tell(ran)], async ({ berth, scripted }) => {
        await berth
          .sandbox("a")
          .exec({ command: "make" }, key)
          .catch(() => undefined);
        expect(scripted.asked).toHaveLength(sent);
      });
    }
  });
});
