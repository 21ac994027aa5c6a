import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { Random } from "../../sim/random.ts";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";
import { Asker, asReader, outputOf, parseEvents } from "./processes.ts";

const MiB = 1024 * 1024;
const bytesMax = MiB;
/** Only a hang takes this long: reads end by their number of bytes. */
const hangMs = 100_000;
const block = { onFull: "block", logBytesMax: bytesMax } as const;

describe("a process that waits for its readers", () => {
  const agent = Agent.forBlock();
  const ask = new Asker(agent);

  /** How much the process has written, once it blocks in a write. */
  async function written(id: string): Promise<number> {
    let last = -1;
    let same = 0;
    await until("it writes no more", async () => {
      const { end } = (await ask.get(id)).log;
      same = end === last ? same + 1 : 0;
      last = end;
      return same > 20;
    });
    return last;
  }

  test("[P14] without a reader the process waits when its log is full, and loses nothing", async () => {
    const { id } = await ask.sh("seq 1 3000000", block);
    expect(await written(id)).toBe(bytesMax);
    expect((await ask.get(id)).state).toBe("running");
    expect(await digest(await ask.raw(id, { stream: "stdout", follow: 1 }))).toBe(
      await digestOf(["seq", "1", "3000000"]),
    );
    expect(await ask.exited(id)).toMatchObject({ exitCode: 0 });
  });

  test("[P14] a reader that does not read blocks the process until it has left for good", async () => {
    const stuck = new AbortController();
    const { id } = await ask.sh("echo up; seq 1 30000000", block);
    const { signal } = stuck;
    const answers = await Promise.all([
      ask.logs(id, { follow: 1 }, { signal }),
      ask.raw(id, { stream: "stdout", follow: 1 }),
    ]);
    const all = digest(answers[1]);
    const held = await written(id);
    // What the connection buffers counts as read.
    expect(held).toBeLessThan(100 * MiB);
    const { end } = (await ask.get(id)).log;
    expect(end).toBe(held);
    stuck.abort();
    expect(await all).toBe(await digestOf(["sh", "-c", "echo up; seq 1 30000000"]));
    expect(await ask.exited(id)).toMatchObject({ exitCode: 0 });
  });

  test("[P14] output at the exit is read later, even more than the log holds unread", async () => {
    const { id } = await ask.sh("seq 1 200000 >&2 & seq 1 200000; wait", {
      ...block,
      logBytesMax: 65_536,
    });
    expect(await written(id)).toBe(65_536);
    await ask.end(id);
    const { log } = await ask.get(id);
    expect(log.start).toBe(0);
    expect(log.end).toBeGreaterThan(65_536);
    const out = (await ask.bytes(id, "stdout")).toString();
    const err = (await ask.bytes(id, "stderr")).toString();
    expect(out.length + err.length).toBe(log.end);
    const complete = `${Array.from({ length: 200_000 }, (_, n) => n + 1).join("\n")}\n`;
    expect(complete.startsWith(out) && complete.startsWith(err)).toBe(true);
  });

  test("[P31] a reader that connects again with its id holds nothing for its earlier connections", async () => {
    const { id } = await ask.sh("seq 1 99999999", block);
    let offset = 0;
    const begin = ({ signal }: AbortController) =>
      ask.raw(id, { stream: "stdout", follow: 1, offset }, { signal, ...asReader("follower") });
    const read = async (answer: Response, cut: AbortController, bytes: number) =>
      readSome(answer, { bytes, ms: hangMs, cut }, (some) => {
        offset += some.length;
      });
    const first = new AbortController();
    await read(await begin(first), first, MiB);
    expect(offset).toBeGreaterThan(MiB);
    // Each round is shorter than the time for which a reader that was cut off is waited for.
    for (let round = 0; round < 6; round += 1) {
      const [earlier, current] = [new AbortController(), new AbortController()];
      await begin(earlier);
      const answer = await begin(current);
      earlier.abort();
      const before = offset;
      expect(await read(answer, current, 24 * MiB)).toBe(false);
      expect(offset - before).toBeGreaterThan(24 * MiB);
    }
    await ask.end(id);
  });

  test("[P33] at the limit of readers, a reader that connects again replaces its earlier connection", async () => {
    const places = limits.processFollowersMax;
    const abort = new AbortController();
    const { id } = await ask.sh("seq 1 99999999", block);
    const begin = (reader: string) =>
      ask.raw(id, { stream: "stdout", follow: 1 }, { signal: abort.signal, ...asReader(reader) });
    await written(id);
    const readers = Array.from({ length: places }, (_, n) => `reader-${n}`);
    const connections = await Promise.all(readers.map(begin));
    expect(connections.map(({ status }) => status)).toEqual(Array(places).fill(200));
    expect((await begin("another")).status).toBe(429);
    const replaced = digest(connections[5] as Response).then(
      () => "read",
      () => "cut off",
    );
    const newer = await begin("reader-5");
    expect(newer.status).toBe(200);
    expect(await replaced).toBe("cut off");
    expect((await begin("another")).status).toBe(429);
    abort.abort();
    await ask.end(id);
  });

  test("[F18] a follower of raw bytes that is cut off again and again reads every byte once", async () => {
    const { id } = await ask.sh("seq 1 12500000", block);
    const random = new Random(7);
    const hash = createHash("sha256");
    let offset = 0;
    let cuts = 0;
    for (let over = false; !over; ) {
      const cut = new AbortController();
      const answer = await ask.raw(
        id,
        { stream: "stdout", follow: 1, offset },
        { signal: cut.signal, ...asReader("bytes") },
      );
      expect(answer.headers.get("berth-offset")).toBe(String(offset));
      over = await readSome(answer, { bytes: 4 * MiB * random.next(), ms: 50, cut }, (bytes) => {
        hash.update(bytes);
        offset += bytes.length;
      });
      if (!over) cuts += 1;
    }
    expect(cuts).toBeGreaterThan(20);
    expect(offset).toBeGreaterThan(100_000_000);
    expect(hash.digest("hex")).toBe(await digestOf(["seq", "1", "12500000"]));
    expect((await ask.get(id)).log).toMatchObject({ stdoutBytes: offset });
  });

  test("[F18] a follower of events that is cut off again and again reads both streams whole", async () => {
    const { id } = await ask.sh("seq 1 6500000 & seq 2 6500001 >&2; wait", block);
    const random = new Random(11);
    const hashes = { stdout: createHash("sha256"), stderr: createHash("sha256") };
    let after = 0;
    let cuts = 0;
    let exit: unknown;
    while (exit === undefined) {
      const cut = new AbortController();
      const init = { signal: cut.signal, ...asReader("events") };
      const answer = await ask.logs(id, { follow: 1, after }, init);
      let text = "";
      const limits = { bytes: 6 * MiB * random.next(), ms: 50, cut };
      const over = await readSome(answer, limits, (bytes) => {
        text += Buffer.from(bytes).toString("latin1");
        if (!text.includes("\n\n")) return;
        const complete = text.lastIndexOf("\n\n") + 2;
        const events = parseEvents(text.slice(0, complete));
        text = text.slice(complete);
        for (const event of events) {
          expect(event.event).not.toBe("truncated");
          if (event.event === "exit") exit = event.data;
          after = event.id ?? after;
        }
        for (const stream of ["stdout", "stderr"] as const) {
          hashes[stream].update(outputOf(events, stream));
        }
      });
      expect(over).toBe(exit !== undefined);
      if (!over) cuts += 1;
    }
    expect(cuts).toBeGreaterThan(20);
    expect(exit).toMatchObject({ exitCode: 0 });
    expect(after).toBeGreaterThan(100_000_000);
    expect(hashes.stdout.digest("hex")).toBe(await digestOf(["seq", "1", "6500000"]));
    expect(hashes.stderr.digest("hex")).toBe(await digestOf(["seq", "2", "6500001"]));
  });
});

/** True: read to the end. Otherwise cut off, after so many bytes or that time. */
async function readSome(
  answer: Response,
  { bytes, ms, cut }: { bytes: number; ms: number; cut: AbortController },
  take: (bytes: Uint8Array) => void,
): Promise<boolean> {
  const timer = setTimeout(() => cut.abort(), ms);
  const reader = answer.body?.getReader();
  let read = 0;
  try {
    for (;;) {
      const next = await reader?.read();
      if (next === undefined || next.done) return true;
      take(next.value);
      read += next.value.length;
      if (read > bytes) cut.abort();
    }
  } catch (error) {
    if (!cut.signal.aborted) throw error;
    return false;
  } finally {
    clearTimeout(timer);
  }
}

async function digest(answer: Response): Promise<string> {
  const hash = createHash("sha256");
  for await (const bytes of answer.body ?? []) hash.update(bytes);
  return hash.digest("hex");
}

/** Digest of what a program prints on this machine. */
async function digestOf([program = "", ...args]: string[]): Promise<string> {
  const hash = createHash("sha256");
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
  for await (const bytes of child.stdout) hash.update(bytes);
  return hash.digest("hex");
}
