import { closeSync, mkdtempSync, openSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Ring } from "../../../container/agent/processes/ring.ts";
import { Runs, type Stream } from "../../../container/agent/processes/runs.ts";

/** The stream of each byte that ever came, and nothing clever. */
class Naive {
  readonly streams: Stream[] = [];
  start = 0;

  append(stream: Stream, length: number, max: number): void {
    if (length > 0 && this.streams.at(-1) !== stream) {
      const begins = this.#begins();
      if (begins.length === max) this.start = Math.max(this.start, begins[1] ?? 0);
    }
    for (let n = 0; n < length; n += 1) this.streams.push(stream);
  }

  drop(cursor: number): void {
    this.start = Math.max(this.start, Math.min(cursor, this.streams.length));
  }

  before(cursor: number, stream: Stream): number {
    return this.streams.slice(0, cursor).filter((one) => one === stream).length;
  }

  /** Where each run begins of which something is kept; the newest counts always. */
  #begins(): number[] {
    const all = this.streams.flatMap((one, at) => (this.streams[at - 1] === one ? [] : [at]));
    return all.filter((_, n) => n === all.length - 1 || (all[n + 1] ?? 0) > this.start);
  }
}

const stream = fc.constantFrom<Stream>("stdout", "stderr");
const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ stream, length: fc.integer({ min: 0, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ drop: fc.integer({ min: 0, max: 6 }) }) },
);

test("[P8] the index of a log agrees with one that remembers the stream of every byte", () => {
  let overflowed = 0;
  let grown = 0;
  fc.assert(
    fc.property(
      fc.oneof(fc.integer({ min: 2, max: 20 }), fc.integer({ min: 65, max: 100 })),
      fc.array(step, { maxLength: 300, size: "max" }),
      (max, steps) => {
        const runs = new Runs(max);
        const naive = new Naive();
        for (const one of steps) {
          const { start } = naive;
          if ("drop" in one) {
            runs.dropBefore(start + one.drop);
            naive.drop(start + one.drop);
          } else {
            runs.append(one.stream, one.length);
            naive.append(one.stream, one.length, max);
            if (naive.start > start) overflowed += 1;
          }
          expect([runs.start, runs.end]).toEqual([naive.start, naive.streams.length]);
        }
        if (runs.end > 200) grown += 1;
        agree(runs, naive);
      },
    ),
    { numRuns: 1000 },
  );
  expect(overflowed).toBeGreaterThan(100);
  expect(grown).toBeGreaterThan(20);
});

function agree(runs: Runs, naive: Naive): void {
  for (const one of ["stdout", "stderr"] as const) {
    expect(runs.total(one)).toBe(naive.before(runs.end, one));
    for (let cursor = runs.start; cursor <= runs.end; cursor += 1) {
      expect(runs.offsetAt(cursor, one)).toBe(naive.before(cursor, one));
      if (naive.streams[cursor] !== one) continue;
      expect(runs.cursorAt(naive.before(cursor, one), one)).toBe(cursor);
    }
    const lost = naive.before(runs.start, one);
    if (lost > 0)
      expect(runs.cursorAt(lost - 1, one)).toBe(runs.total(one) < lost ? runs.end : undefined);
    expect(runs.cursorAt(runs.total(one), one)).toBe(runs.end);
  }
  for (let cursor = runs.start; cursor < runs.end; cursor += 1) {
    const next = naive.streams.findIndex((one, at) => at > cursor && one !== naive.streams[cursor]);
    expect(runs.at(cursor)).toEqual({
      stream: naive.streams[cursor],
      to: next < 0 ? naive.streams.length : next,
    });
  }
  expect(runs.at(runs.end)).toBeUndefined();
}

test("[P8] what is read from the ring is what was written there, and the file has no name", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-ring-"));
  const pieces = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 40 });
  let wrapped = 0;
  const before = descriptors();
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 64 }), pieces, (size, written) => {
      const ring = new Ring(folder, size);
      expect(readdirSync(folder)).toEqual([]);
      let all = Buffer.alloc(0);
      for (const piece of written) {
        ring.write(all.length, piece);
        all = Buffer.concat([all, piece]);
        const kept = Math.min(size, all.length);
        expect(ring.read(all.length - kept, kept)).toEqual(all.subarray(all.length - kept));
      }
      if (all.length > size) wrapped += 1;
      ring.close();
    }),
    { numRuns: 300 },
  );
  expect(wrapped).toBeGreaterThan(50);
  expect(descriptors()).toBe(before);
  rmSync(folder, { recursive: true });
});

/** The lowest that is free says how many are open, where none was closed between. */
function descriptors(): number {
  const fd = openSync("/dev/null", "r");
  closeSync(fd);
  return fd;
}
