import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Emulator } from "../../../container/agent/terminals/screen/emulator.ts";
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

/** Anywhere alike: a number that prefers small ones would cut before anything is drawn. */
const share = fc.noBias(fc.integer({ min: 0, max: 1000 })).map((part) => part / 1000);

/** The same in each run: a few of them differ, and which ones must not be a matter of luck. */
const runs = 1000;
/** Of 1,000: what is left are corners such as halves of wide characters and what a program saved and never restored. */
const othersMax = 5;

function samples() {
  return fc.sample(fc.tuple(size, output, share, share), { numRuns: runs, seed: 1 });
}

describe("the picture of a screen", () => {
  it("[G1] gives a fresh terminal the same cells, cursor and modes, wherever the output is cut", async () => {
    let cells = 0;
    let others = 0;
    for (const [{ cols, rows }, bytes, one, two] of samples()) {
      const [before] = cutAt(bytes, two);
      const [first, second] = cutAt(before, one);
      const emulator = await drawn(cols, rows, first, second);
      const copy = await drawn(cols, rows, emulator.picture());
      const state = stateOf(emulator);
      if (!isDeepStrictEqual(stateOf(copy), state)) others += 1;
      cells += state.normal.flat().filter((cell) => !/^( |behind)/.test(cell)).length;
      emulator.free();
      copy.free();
    }
    expect(cells).toBeGreaterThan(10_000);
    expect(others).toBeLessThanOrEqual(othersMax);
  });

  it("[G1] keeps styles and colours of underlining", async () => {
    const emulator = await drawn(20, 3, Buffer.from("\x1b[4:3;58;5;9mcurly\x1b[m plain"));
    const copy = await drawn(20, 3, emulator.picture());
    expect(stateOf(copy)).toEqual(stateOf(emulator));
    expect(stateOf(copy).normal[0]?.[0]).toContain("4:3;58;5;9");
  });

  it("[G14] survives erasing all above the end of the last line", async () => {
    for (const erase of ["\x1b[1J", "\x1b[?1J"]) {
      const emulator = await drawn(4, 2, Buffer.from(`ab\r\nabcd${erase}`));
      expect(emulator.look().text.trim()).toBe("");
      expect(stateOf(await drawn(4, 2, emulator.picture()))).toEqual(stateOf(emulator));
      // Where there are lines above the screen it never failed: the same then.
      const scrolled = await drawn(4, 2, Buffer.from(`1\r\n2\r\nab\r\nabcd${erase}`));
      expect(scrolled.look().text.trim()).toBe("");
    }
  });

  it("[G2] lets a terminal go on from it as one that saw everything", async () => {
    let cells = 0;
    let others = 0;
    for (const [{ cols, rows }, bytes, at] of samples()) {
      const [before, after] = cutAt(bytes, at);
      const emulator = await drawn(cols, rows, before);
      const copy = await drawn(cols, rows, emulator.picture());
      await emulator.write(after);
      await copy.write(after);
      const state = stateOf(emulator);
      if (!isDeepStrictEqual(stateOf(copy), state)) others += 1;
      cells += state.normal.flat().filter((cell) => !/^( |behind)/.test(cell)).length;
      emulator.free();
      copy.free();
    }
    expect(cells).toBeGreaterThan(10_000);
    expect(others).toBeLessThanOrEqual(othersMax);
  });
});
