import { getEventListeners } from "node:events";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { unlessAborted } from "../../../src/client/http/whole-body.ts";
import { type Berth, BerthError, connect, errors } from "../../../src/client/index.ts";
import { type Answer, keepSilent, refuse, Scripted, tell } from "./scripted.ts";

type Scene = { berth: Berth; scripted: Scripted };

async function scene(answers: Answer[], play: (scene: Scene) => Promise<void>): Promise<void> {
  await using scripted = await Scripted.answering(...answers);
  await play({ berth: connect({ url: `${scripted.url}/`, key: "the key" }), scripted });
}

const failure = (call: Promise<unknown>) =>
  call.then(
    (answer) => Promise.reject(new Error(`answered ${JSON.stringify(answer)}`)),
    (thrown) => thrown as BerthError,
  );

const plain =
  (status: number, text: string): Answer =>
  (response) => {
    response.writeHead(status, { "content-type": "text/html" });
    response.end(text);
  };

describe("what a call is refused with", () => {
  it("[SD1] is one typed error: code, facts, hint and the id that the log knows", () =>
    scene([refuse("not_found", { hint: "look", names: ["a", "b"] })], async ({ berth }) => {
      const error = await failure(berth.sandbox("a").get());
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
    }));

  it("[SD1] may stand in a 200 that took long", () => {
    const late: Answer = (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write("   ");
      const error = { code: "operation_interrupted", message: "gone", admitted: true };
      response.end(JSON.stringify({ error, requestId: "r" }));
    };
    return scene([late], async ({ berth }) => {
      const error = await failure(berth.sandbox("a").exec({ command: "sleep 9" }));
      expect(error).toMatchObject({ code: "operation_interrupted", facts: { admitted: true } });
    });
  });

  it("[PL109] is not what an answer tells of: a run that was aborted says why", () => {
    const aborted: Answer = (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const error = { code: "disk_full", message: "no room" };
      response.end(JSON.stringify({ commit: 3, outcome: "aborted", error, members: [] }));
    };
    return scene([aborted], async ({ berth }) => {
      expect(await berth.plan("p").commit()).toMatchObject({
        outcome: "aborted",
        error: { code: "disk_full" },
      });
    });
  });

  it("[SD1] is never taken for an answer of Berth's when somebody else gave it", async () => {
    await scene([plain(404, "<html>")], async ({ berth, scripted }) => {
      const error = await failure(berth.sandbox("a").get());
      expect(error.code).toBe("not_found");
      expect(error.message).toContain(scripted.url);
      expect(error.hint).toContain("url");
    });
    await scene([plain(200, "<html>welcome")], async ({ berth }) => {
      expect((await failure(berth.counts())).code).toBe("bad_request");
    });
    await scene([plain(502, "bad gateway")], async ({ berth }) => {
      const error = await failure(berth.sandbox("a").exec({ command: "make" }));
      expect(error).toMatchObject({
        code: "operation_interrupted",
        facts: { admitted: "unknown" },
      });
    });
  });

  it("[SD1] may have a code of a later version: the nearest known one, and the told one beside it", () =>
    scene([refuse("moon_in_the_way")], async ({ berth }) => {
      const error = await failure(berth.sandbox("a").exec({ command: "make" }));
      expect(error).toMatchObject({ code: "bad_request", facts: { told: "moon_in_the_way" } });
    }));
});

describe("a call", () => {
  it("[SD2] goes where its names lead and nowhere else, with the key in its header alone", () =>
    scene([tell({}), tell({}), tell({})], async ({ berth, scripted }) => {
      await berth.sandbox("../../x?y").process("a/b#c");
      await berth.sandbox("..").get();
      await berth.list({ metadata: ["a=b c", "d=&"], limit: 2 });
      expect(scripted.asked.map(({ path }) => path)).toEqual([
        "/v1/sandboxes/..%2F..%2Fx%3Fy/processes/a%2Fb%23c",
        "/v1/sandboxes/%00",
        "/v1/sandboxes?metadata=a%3Db+c&metadata=d%3D%26&limit=2",
      ]);
      for (const { headers } of scripted.asked) {
        expect(headers.authorization).toBe("Bearer the key");
        expect(headers["berth-request-id"]).toMatch(/^[0-9a-f]{24}$/);
      }
    }));

  it("[SD2] shows its key in nothing that a program prints", () =>
    scene([refuse("not_found")], async ({ berth }) => {
      const error = await failure(berth.sandbox("a").get());
      const shown = [berth, berth.sandbox("a"), error].map((one) => inspect(one, { depth: 9 }));
      expect(shown.join("")).toContain("exec");
      expect(shown.join("")).not.toContain("the key");
    }));

  it("[SD2] takes a key that changes, and says at once when it is told nonsense", async () => {
    await using scripted = await Scripted.answering(tell({}), tell({}));
    const keys = ["one", "two"];
    const berth = connect({ url: scripted.url, key: async () => keys.shift() ?? "" });
    await berth.counts();
    await berth.counts();
    expect(scripted.asked.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer one",
      "Bearer two",
    ]);
    expect(() => connect({ url: "localhost:8787", key: "k" })).toThrow(/`url`/);
  });
});

describe("a caller who gives a call up", () => {
  it("[SD5] is rid of it at once, and its connection is gone", () =>
    scene([keepSilent], async ({ berth, scripted }) => {
      const given = new AbortController();
      const call = failure(
        berth.sandbox("a").exec({ command: "sleep 9" }, { signal: given.signal }),
      );
      await expect.poll(() => scripted.asked.length).toBe(1);
      given.abort(new Error("enough"));
      expect(await call).toMatchObject({ message: "enough" });
      await scripted.asked[0]?.gone;
      expect(scripted.asked).toHaveLength(1);
    }));

  it("[SD5] is rid of one that waits to be sent again", () =>
    scene([refuse("unavailable", { retryAfter: "20" })], async ({ berth, scripted }) => {
      const given = new AbortController();
      const call = failure(berth.sandbox("a").get({ signal: given.signal }));
      await expect.poll(() => scripted.asked.length).toBe(1);
      await scripted.asked[0]?.gone;
      given.abort(new Error("enough"));
      expect(await call).toMatchObject({ message: "enough" });
    }));

  it("[SD5] may say it of any verb, and of all calls of a handle", () =>
    scene([tell({})], async ({ berth, scripted }) => {
      const signal = AbortSignal.abort(new Error("before"));
      const box = berth.sandbox("a");
      const calls = [
        box.get({ signal }),
        box.exec({ command: "true" }, { signal }),
        box.process("p", { signal }),
        box.signalProcess("p", "SIGTERM", { signal }),
        box.writeStdin("p", new Uint8Array(1), { signal, offset: 0 }),
        box.patchMetadata({ signal: "kept" }, { signal }),
        box.readFile("f", { signal }),
        berth.list({ signal }),
        box.with({ signal }).touch(),
        berth.with({ signal }).sandbox("b").get(),
      ];
      for (const call of calls) expect(await failure(call)).toMatchObject({ message: "before" });
      expect(scripted.asked).toEqual([]);
      await box.patchMetadata({ signal: "kept", answerWithinMs: "too" });
      expect(JSON.parse(String(scripted.asked[0]?.body))).toEqual({
        signal: "kept",
        answerWithinMs: "too",
      });
    }));

  it("[SD5] is rid of one whose key is still asked for, which then is not sent", async () => {
    await using scripted = await Scripted.answering();
    const asked: ((key: string) => void)[] = [];
    const key = () => new Promise<string>((resolve) => asked.push(resolve));
    const box = connect({ url: scripted.url, key, retry: { retries: 0 } }).sandbox("a");
    const given = new AbortController();
    const aborted = failure(box.exec({ command: "make" }, { signal: given.signal }));
    const late = failure(box.exec({ command: "make" }, { answerWithinMs: 50 }));
    await expect.poll(() => asked.length).toBe(2);
    given.abort(new Error("enough"));
    expect(await aborted).toMatchObject({ message: "enough" });
    expect(await late).toMatchObject({ code: "unavailable", hint: expect.stringContaining("key") });
    for (const tell of asked) tell("k");
    expect(scripted.asked).toEqual([]);
  });

  it("[SD5] is told so by whatever ends it, and by nothing that nobody hears", async () => {
    const given = new AbortController();
    const answer = Promise.withResolvers<never>();
    given.abort(new Error("enough"));
    const waits = failure(unlessAborted(answer.promise, given.signal));
    // Vitest fails where this rejection is not heard.
    answer.reject(new Error("the connection is gone"));
    expect(await waits).toMatchObject({ message: "enough" });
    await new Promise((resolve) => setTimeout(resolve));
  });

  it("[LV20] holds no signal after a terminal that it could not attach to", () =>
    scene([refuse("not_found"), tell({ ticket: "t" })], async ({ berth }) => {
      const { signal } = new AbortController();
      const attaching = berth.sandbox("a").attachTerminal("main", { signal });
      expect(await failure(attaching)).toMatchObject({ code: "not_found" });
      expect(getEventListeners(signal, "abort")).toHaveLength(0);
    }));

  it("[SD5] may say how long an answer may take: then what runs is unknown, what looks did nothing", async () => {
    await scene([keepSilent], async ({ berth, scripted }) => {
      const call = berth.sandbox("a").exec({ command: "make" }, { answerWithinMs: 100 });
      expect(await failure(call)).toMatchObject({
        code: "operation_interrupted",
        facts: { admitted: "unknown" },
      });
      await scripted.asked[0]?.gone;
    });
    const trickle: Answer = (response) => {
      const beat = setInterval(() => response.write(" "), 10);
      response.on("close", () => clearInterval(beat));
    };
    await scene([trickle], async ({ berth, scripted }) => {
      const error = await failure(berth.sandbox("a").get({ answerWithinMs: 200 }));
      expect(error).toMatchObject({ code: "unavailable" });
      expect(error.message).toMatch(/no answer for \d+ ms/);
      await scripted.asked[0]?.gone;
    });
  });
});
