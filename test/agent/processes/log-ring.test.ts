import { closeSync, mkdtempSync, openSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Ring } from "../../../container/agent/processes/ring.ts";
import { Runs, type Stream } from "../../../container/agent/processes/runs.ts";

/** A simple model: the stream of every byte that ever came. */
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
    return this.streams.slice(0, cursor).filter((other) => other === stream).length;
  }

  /** The start of each run that is at least partly stored. The newest one always counts. */
  #begins(): number[] {
    const all = this.streams.flatMap((stream, cursor) =>
      this.streams[cursor - 1] === stream ? [] : [cursor],
    );
    return all.filter((_, n) => n === all.length - 1 || (all[n + 1] ?? 0) > this.start);
  }
}

const stream = fc.constantFrom<Stream>("stdout", "stderr");
const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ stream, length: fc.integer({ min: 0, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ drop: fc.integer({ min: 0, max: 6 }) }) },
);

test("[P8] the index of a log agrees with a model that remembers the stream of every byte", () => {
  let overflowed = 0;
  let grown = 0;
  fc.assert(
    fc.property(
      fc.oneof(fc.integer({ min: 2, max: 20 }), fc.integer({ min: 65, max: 100 })),
      fc.array(step, { maxLength: 300, size: "max" }),
      (max, steps) => {
        const runs = new Runs(max);
        const naive = new Naive();
        for (const step of steps) {
          const { start } = naive;
          if ("drop" in step) {
            runs.dropBefore(start + step.drop);
            naive.drop(start + step.drop);
          } else {
            runs.append(step.stream, step.length);
            naive.append(step.stream, step.length, max);
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
  for (const stream of ["stdout", "stderr"] as const) {
    expect(runs.total(stream)).toBe(naive.before(runs.end, stream));
    for (let cursor = runs.start; cursor <= runs.end; cursor += 1) {
      expect(runs.offsetAt(cursor, stream)).toBe(naive.before(cursor, stream));
      if (naive.streams[cursor] !== stream) continue;
      expect(runs.cursorAt(naive.before(cursor, stream), stream)).toBe(cursor);
    }
    const lost = naive.before(runs.start, stream);
    if (lost > 0)
      expect(runs.cursorAt(lost - 1, stream)).toBe(
        runs.total(stream) < lost ? runs.end : undefined,
      );
    expect(runs.cursorAt(runs.total(stream), stream)).toBe(runs.end);
  }
  for (let cursor = runs.start; cursor < runs.end; cursor += 1) {
    const next = naive.streams.findIndex(
      (stream, index) => index > cursor && stream !== naive.streams[cursor],
    );
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

/** The lowest free descriptor shows how many are open, if none in between was closed. */
function descriptors(): number {
  const fd = openSync("/dev/null", "r");
  closeSync(fd);
  return fd;
}
