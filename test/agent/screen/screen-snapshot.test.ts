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

/** Cuts anywhere, also within a character or a sequence. */
function cutAt(bytes: Uint8Array, share: number): [Uint8Array, Uint8Array] {
  const index = Math.floor(share * bytes.length);
  return [bytes.subarray(0, index), bytes.subarray(index)];
}

async function emulatorWith(cols: number, rows: number, ...parts: Uint8Array[]): Promise<Emulator> {
  const emulator = new Emulator(cols, rows);
  for (const part of parts) await emulator.write(part);
  return emulator;
}

/** Without bias, because small numbers would cut before there is any output. */
const share = fc.noBias(fc.integer({ min: 0, max: 1000 })).map((part) => part / 1000);

/** The same in each run, because a few of them differ and the test must not depend on luck. */
const runs = 1000;
/** Among 1,000: corner cases such as halves of wide characters, and state that a program saved and never restored. */
const differencesMax = 5;

type Sample = { cols: number; rows: number; bytes: Uint8Array; shares: [number, number] };

/** Expects that the two emulators of nearly every sample have the same state. */
async function compareSamples(
  play: (sample: Sample) => Promise<{ emulator: Emulator; copy: Emulator }>,
): Promise<void> {
  let cells = 0;
  let differences = 0;
  const samples = fc.sample(fc.tuple(size, output, share, share), { numRuns: runs, seed: 1 });
  for (const [{ cols, rows }, bytes, ...shares] of samples) {
    const { emulator, copy } = await play({ cols, rows, bytes, shares });
    const state = stateOf(emulator);
    if (!isDeepStrictEqual(stateOf(copy), state)) differences += 1;
    cells += state.normal.flat().filter((cell) => !/^( |behind)/.test(cell)).length;
    emulator.free();
    copy.free();
  }
  expect(cells).toBeGreaterThan(10_000);
  expect(differences).toBeLessThanOrEqual(differencesMax);
}

describe("the snapshot of a screen", () => {
  it("[G1] gives a fresh terminal the same cells, cursor and modes, wherever the output is cut", () =>
    compareSamples(async ({ cols, rows, bytes, shares: [firstShare, secondShare] }) => {
      const [before] = cutAt(bytes, secondShare);
      const emulator = await emulatorWith(cols, rows, ...cutAt(before, firstShare));
      return { emulator, copy: await emulatorWith(cols, rows, emulator.snapshot()) };
    }));

  it("[G1] keeps styles and colours of underlining", async () => {
    const emulator = await emulatorWith(20, 3, Buffer.from("\x1b[4:3;58;5;9mcurly\x1b[m plain"));
    const copy = await emulatorWith(20, 3, emulator.snapshot());
    expect(stateOf(copy)).toEqual(stateOf(emulator));
    expect(stateOf(copy).normal[0]?.[0]).toContain("4:3;58;5;9");
  });

  it("[G14] survives erasing all above the end of the last line", async () => {
    for (const erase of ["\x1b[1J", "\x1b[?1J"]) {
      const emulator = await emulatorWith(4, 2, Buffer.from(`ab\r\nabcd${erase}`));
      expect(emulator.screenText().text.trim()).toBe("");
      expect(stateOf(await emulatorWith(4, 2, emulator.snapshot()))).toEqual(stateOf(emulator));
      // With lines above the screen the emulator does not fail, and the result is the same.
      const scrolled = await emulatorWith(4, 2, Buffer.from(`1\r\n2\r\nab\r\nabcd${erase}`));
      expect(scrolled.screenText().text.trim()).toBe("");
    }
  });

  it("[G2] lets a terminal continue from it as if it had seen everything", () =>
    compareSamples(async ({ cols, rows, bytes, shares: [cutShare] }) => {
      const [before, after] = cutAt(bytes, cutShare);
      const emulator = await emulatorWith(cols, rows, before);
      const copy = await emulatorWith(cols, rows, emulator.snapshot());
      await emulator.write(after);
      await copy.write(after);
      return { emulator, copy };
    }));
});
