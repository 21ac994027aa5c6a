import { describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";
import { Asker, outputOf, parseEvents, refusalOf } from "./processes.ts";

const MiB = 1024 * 1024;

describe("the log of a process", () => {
  const agent = Agent.forBlock();
  const ask = new Asker(agent);

  test("[P8] bytes arrive as they were written: NUL, invalid UTF-8, no line end, each stream in its order", async () => {
    const { id } = await ask.sh(
      `printf 'a\\000b\\377\\376'; printf '\\303' >&2; printf '\\n\\000\\200end'; printf '\\244' >&2`,
    );
    await ask.exited(id);
    const stdout = Buffer.from("a\0b\xff\xfe\n\0\x80end", "latin1");
    const stderr = Buffer.from("\xc3\xa4", "latin1");
    const events = await ask.events(id);
    expect(outputOf(events, "stdout")).toEqual(stdout);
    expect(outputOf(events, "stderr")).toEqual(stderr);
    expect(await ask.bytes(id, "stdout")).toEqual(stdout);
    expect(await ask.bytes(id, "stderr")).toEqual(stderr);
  });

  test("[P8] the log has both streams in the order in which they came", async () => {
    const { id } = await ask.sh("while read word; do echo $word; read word; echo $word >&2; done");
    let words = "";
    for (let n = 0; n < 20; n += 1) {
      await ask.written(id, `${n}\n`);
      words += `${n}\n`;
      await until("it was echoed", async () => (await ask.get(id)).log.end === words.length);
    }
    await ask.written(id, "", { eof: 1 });
    await ask.exited(id);
    const events = await ask.events(id);
    expect(outputOf(events).toString()).toBe(words);
    expect(outputOf(events, "stderr").toString()).toBe(words.replace(/^\d*[02468]\n/gm, ""));
    expect(events.filter(({ event }) => event === "output").length).toBe(20);
  });

  test("[P9] from any cursor the rest comes exactly once; a cursor counts the bytes before it", async () => {
    const { id } = await ask.sh("printf abc; read go; printf 12 >&2; read go; printf defg");
    for (const end of [3, 5]) {
      await until("it was written", async () => (await ask.get(id)).log.end === end);
      await ask.written(id, "go\n");
    }
    const { log } = await ask.exited(id);
    const events = await ask.events(id);
    const all = outputOf(events).toString();
    expect(all).toBe("abc12defg");
    expect(
      events.filter(({ id: cursor }) => cursor !== undefined).map((event) => event.id),
    ).toEqual([3, 5, 9]);
    for (let after = 0; after <= log.end; after += 1) {
      const byQuery = await ask.events(id, { after });
      expect(outputOf(byQuery).toString()).toBe(all.slice(after));
      expect(byQuery.at(-1)?.event).toBe("exit");
      const out = (await ask.bytes(id, "stdout", { after })).toString();
      expect(out).toBe(all.slice(after).replace(/\d/g, ""));
    }
    for (let offset = 0; offset <= 7; offset += 1) {
      const answer = await ask.raw(id, { stream: "stdout", offset });
      expect(answer.headers.get("berth-offset")).toBe(String(offset));
      expect(await answer.text()).toBe("abcdefg".slice(offset));
    }
    const event = await ask.events(id, { stream: "stderr" });
    expect(outputOf(event).toString()).toBe("12");
    expect(event.map(({ event }) => event)).toEqual(["output", "exit"]);
  });

  test("[P9] a position that was never written, or does not fit the form, is refused by its field", async () => {
    const { id } = await ask.sh("printf 12345");
    await ask.exited(id);
    const raw = { accept: "application/octet-stream" };
    const cases: [Record<string, string>, Record<string, string>, string][] = [
      [{ after: "6" }, {}, "after"],
      [{ offset: "1" }, {}, "offset"],
      [{}, raw, "stream"],
      [{ stream: "stdout", offset: "6" }, raw, "offset"],
      [{ stream: "stdout", after: "6" }, raw, "after"],
    ];
    for (const [query, headers, field] of cases) {
      const refused = await refusalOf(await ask.logs(id, query, { headers }));
      expect(refused).toMatchObject({ status: 400, code: "bad_request", field });
    }
  });

  test("[P10] with drop the oldest bytes make room, and a reader learns of the gap", async () => {
    const { id } = await ask.sh("seq 1 100000; echo last >&2", { logBytesMax: 65_536 });
    const { log } = await ask.exited(id);
    const all = `${Array.from({ length: 100_000 }, (_, n) => n + 1).join("\n")}\n`;
    expect(log).toMatchObject({ end: all.length + 5, stdoutBytes: all.length, stderrBytes: 5 });
    expect(log.end - log.start).toBe(65_536);
    const [gap, ...rest] = await ask.events(id);
    expect(gap).toEqual({
      ...{ event: "truncated", id: log.start },
      data: { from: 0, to: log.start },
    });
    expect(outputOf(rest, "stdout").toString()).toBe(
      all.slice(log.start - (log.end - all.length - 5)),
    );
    const raw = await ask.raw(id, { stream: "stdout", offset: 100 });
    expect(raw.headers.get("berth-offset")).toBe(String(log.start));
    expect(await raw.text()).toBe(all.slice(log.start));
    expect((await ask.events(id, { after: log.start }))[0]?.event).toBe("output");
  });

  test("[P11] with drop a reader that does not read costs nothing and blocks no process", async () => {
    const stuck = new AbortController();
    const { id } = await ask.sh("echo up; read go; head -c 500M /dev/zero; echo done >&2");
    const readers = await Promise.all([
      ask.logs(id, { follow: 1 }, { signal: stuck.signal }),
      ask.raw(id, { follow: 1, stream: "stdout" }, { signal: stuck.signal }),
    ]);
    expect(readers.map(({ status }) => status)).toEqual([200, 200]);
    const memory = agent.memoryKiB();
    await ask.written(id, "go\n");
    const { log } = await ask.exited(id);
    expect(log.stdoutBytes).toBe(500 * MiB + 3);
    expect(agent.memoryKiB() - memory).toBeLessThan(100 * 1024);
    stuck.abort();
  });

  test("[P11] raw bytes with a gap never look complete: a reader that fell behind is cut off", async () => {
    const { id } = await ask.sh("echo up; read go; head -c 500M /dev/zero", {
      logBytesMax: 65_536,
    });
    const answer = await ask.raw(id, { follow: 1, stream: "stdout" });
    await ask.written(id, "go\n");
    await ask.exited(id);
    await expect(answer.arrayBuffer()).rejects.toThrow();
    const second = await ask.raw(id, { follow: 1, stream: "stdout", offset: 1 });
    expect(second.headers.get("berth-offset")).toBe(String(500 * MiB + 3 - 65_536));
    expect((await second.arrayBuffer()).byteLength).toBe(65_536);
  });

  test("[P12] a follower gets what comes as it comes, and the exit at the end", async () => {
    const { id } = await ask.sh("while read word; do echo got $word; done; exit 3");
    const chunks = chunksOf(await ask.logs(id, { follow: 1 }));
    let text = "";
    const readUntil = async (part: string) => {
      while (!text.includes(part)) text += await chunks.next();
    };
    // The response begins at once, before there is any output.
    await readUntil(":\n\n");
    for (const word of ["one", "two"]) {
      await ask.written(id, `${word}\n`);
      await readUntil(Buffer.from(`got ${word}\n`).toString("base64"));
    }
    await ask.written(id, "", { eof: 1 });
    await readUntil("event: exit");
    expect(parseEvents(text).at(-1)?.data).toEqual({ exitCode: 3, signal: null, timedOut: false });
    await expect(chunks.next()).rejects.toThrow("no more");
  });

  test("[P12] a reader that does not follow ends at the present end, without an exit while the process runs", async () => {
    const { id } = await ask.sh("echo now; sleep 1000");
    await ask.wait(id, { for: "log:now" });
    const events = await ask.events(id);
    expect(events.map(({ event }) => event)).toEqual(["output"]);
    expect((await ask.bytes(id, "stdout")).toString()).toBe("now\n");
    await ask.end(id);
  });

  test("[P12] a response without output carries keepalive comments", async () => {
    const { id } = await ask.sh("sleep 1000");
    const chunks = chunksOf(await ask.logs(id, { follow: 1 }));
    expect([await chunks.next(), await chunks.next()]).toEqual([":\n\n", ":\n\n"]);
    await chunks.cancel();
    await ask.end(id);
  });

  test("[P13] the number of readers of a log is limited; the refusal names the limit, and a reader that leaves frees a slot", async () => {
    const { id } = await ask.sh("sleep 1000");
    const abort = new AbortController();
    const readers = await Promise.all(
      Array.from({ length: 64 }, () => ask.logs(id, { follow: 1 }, { signal: abort.signal })),
    );
    expect(readers.every(({ status }) => status === 200)).toBe(true);
    const refused = await refusalOf(await ask.logs(id, { follow: 1 }));
    expect(refused).toMatchObject({ status: 429, code: "too_many", limit: 64 });
    abort.abort();
    await until("there is room", async () => {
      const answer = await ask.logs(id);
      await answer.text();
      return answer.status === 200;
    });
    await ask.end(id);
  });

  test("[P30] at the limit of readers, a reader of raw bytes that was silent for long is evicted, and no other", async () => {
    const { id } = await ask.sh("read line; echo $line; sleep 1000");
    const abort = new AbortController();
    const quiet = Array.from({ length: 63 }, () =>
      ask.raw(id, { stream: "stdout", follow: 1 }, { signal: abort.signal }).then(
        async (answer) => answer.text().catch(() => "cut"),
        () => "cut",
      ),
    );
    const events = await ask.logs(id, { follow: 1 }, { signal: abort.signal });
    await until("all places are taken", async () => {
      const answer = await ask.logs(id);
      await answer.body?.cancel();
      return answer.status === 429;
    });
    let late: Promise<string> | undefined;
    await until("one was evicted", async () => {
      const answer = await ask.logs(id, { follow: 1 });
      if (answer.status === 200) late = answer.text();
      else await answer.body?.cancel();
      return answer.status === 200;
    });
    const cut = await Promise.race(quiet);
    expect(cut).toBe("cut");
    let left = 0;
    for (const event of quiet) event.then((text) => (left += Number(text === "done\n")));
    await ask.written(id, "done\n");
    await ask.wait(id, { for: "log:done" });
    await ask.end(id);
    expect(outputOf(parseEvents(await events.text())).toString()).toBe("done\n");
    expect(outputOf(parseEvents((await late) ?? "")).toString()).toBe("done\n");
    await Promise.all(quiet);
    expect(left).toBe(62);
  });

  test("[P12] a follower of one stream gets keepalive comments while only the other one is written", async () => {
    const { id } = await ask.sh("while :; do echo noise; sleep 0.05; done");
    const chunks = chunksOf(await ask.logs(id, { follow: 1, stream: "stderr" }));
    expect([await chunks.next(), await chunks.next()]).toEqual([":\n\n", ":\n\n"]);
    expect((await ask.get(id)).log.end).toBeGreaterThan(0);
    await chunks.cancel();
    await ask.end(id);
  });
});

/** Reads a response chunk by chunk. */
function chunksOf({ body }: Response) {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  return {
    async next(): Promise<string> {
      const { done, value } = await reader.read();
      if (done) throw new Error("there are no more chunks");
      return Buffer.from(value).toString();
    },
    cancel: () => reader.cancel(),
  };
}
