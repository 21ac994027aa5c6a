import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Emulator } from "../../container/agent/screen/emulator.ts";
import { output } from "./screen-output.ts";
import { stateOf } from "./screen-state.ts";

const size = fc.record({
  cols: fc.integer({ min: 2, max: 20 }),
  rows: fc.integer({ min: 1, max: 8 }),
});

/** Cut anywhere, also within a character or a sequence. */
function cutAt(bytes: Uint8Array, at: number): [Uint8Array, Uint8Array] {
  const place = Math.floor(at * bytes.length);
  return [bytes.subarray(0, place), bytes.subarray(place)];
}

async function drawn(cols: number, rows: number, ...parts: Uint8Array[]): Promise<Emulator> {
  const emulator = new Emulator(cols, rows);
  for (const part of parts) await emulator.write(part);
  return emulator;
}

const share = fc.double({ min: 0, max: 1, noNaN: true });

describe("the picture of a screen", () => {
  it("[G1] gives a fresh terminal the same cells, cursor and modes, wherever the output is cut", async () => {
    let cells = 0;
    await fc.assert(
      fc.asyncProperty(size, output, share, share, async ({ cols, rows }, bytes, one, two) => {
        const [before] = cutAt(bytes, two);
        const [first, second] = cutAt(before, one);
        const emulator = await drawn(cols, rows, first, second);
        const copy = await drawn(cols, rows, emulator.picture());
        expect(stateOf(copy)).toEqual(stateOf(emulator));
        cells += stateOf(copy)
          .normal.flat()
          .filter((cell) => !cell.startsWith(" ")).length;
        emulator.free();
        copy.free();
      }),
      { numRuns: 400 },
    );
    expect(cells).toBeGreaterThan(1000);
  });

  it("[G2] lets a terminal go on from it as one that saw everything", async () => {
    await fc.assert(
      fc.asyncProperty(size, output, share, async ({ cols, rows }, bytes, at) => {
        const [before, after] = cutAt(bytes, at);
        const emulator = await drawn(cols, rows, before);
        const copy = await drawn(cols, rows, emulator.picture());
        await emulator.write(after);
        await copy.write(after);
        expect(stateOf(copy)).toEqual(stateOf(emulator));
        emulator.free();
        copy.free();
      }),
      { numRuns: 400 },
    );
  });
});
