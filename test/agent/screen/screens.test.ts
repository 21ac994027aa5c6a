import { describe, expect, it } from "vitest";
import { Emulator } from "../../../container/agent/terminals/screen/emulator.ts";
import type { DrawerPipes } from "../../../container/agent/terminals/screen/render-client.ts";
import { Screens } from "../../../container/agent/terminals/screen/screens.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../until.ts";
import { realDrawers, Source } from "./screen-source.ts";
import { stateOf } from "./screen-state.ts";

/** A full-screen program that draws its frame once, and then one line again and again. */
const frame = "\x1b[?1049h\x1b[H\x1b[1;31mthe frame\x1b[m\x1b[5;1H";
const redraw = `\r\x1b[K\x1b[32m${"working ".repeat(4)}`;

describe("screens", () => {
  it("[G10] what the ring has lost is on the screen: much output is drawn without being asked", async () => {
    const { start, pids, alive } = realDrawers();
    const screens = new Screens(start, 200);
    const source = new Source("one");
    source.write(frame);
    screens.written(source);
    expect(pids).toEqual([]);
    // Each half of the ring is drawn before the next one comes.
    for (let half = 0; half < 6; half += 1) {
      source.write(redraw.repeat(Math.ceil(limits.terminalRingBytes / 2 / redraw.length) + 1));
      screens.written(source);
      await until("it is drawn", () => pids.length === half + 1);
      await until("nothing draws any more", () => alive() === 0);
    }
    expect(source.start).toBeGreaterThan(limits.terminalRingBytes);
    const look = await screens.look(source);
    expect(look?.text.split("\n")[0]).toBe("the frame");
    expect(look).toMatchObject({ alternate: true, offset: source.end });
    await screens.close();
    expect(alive()).toBe(0);
  });

  it("[G11] output that is faster than drawing is not drawn for nobody, and its end is right", async () => {
    const { start, alive } = realDrawers();
    const screens = new Screens(start);
    const source = new Source("flood");
    const lines = `${"y".repeat(38)}\r\n`.repeat(10_000);
    for (let at = 0; at < 130; at += 1) {
      source.write(lines);
      screens.written(source);
      if (at % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(source.end).toBeGreaterThan(50_000_000);
    source.write("the end");
    const picture = await screens.picture(source);
    expect(picture?.offset).toBe(source.end);
    const shown = new Emulator(40, 10);
    await shown.write(picture?.picture ?? new Uint8Array());
    expect(shown.look().text.split("\n")).toEqual([...Array(9).fill("y".repeat(38)), "the end"]);
    await screens.close();
    expect(alive()).toBe(0);
  });

  it("[G12] each size counts from where it was set", async () => {
    const { start } = realDrawers();
    const screens = new Screens(start);
    const source = new Source("sized");
    screens.written(source);
    const direct = new Emulator(40, 10);
    for (const [cols, rows] of [
      [20, 5],
      [60, 12],
      [33, 7],
    ] as const) {
      const text = `\x1b[34m${"all this is wrapped ".repeat(9)}\x1b[m\r\n`;
      source.write(text);
      screens.written(source);
      await direct.write(Buffer.from(text));
      Object.assign(source, { cols, rows });
      screens.resized(source);
      direct.resize(cols, rows);
    }
    const picture = await screens.picture(source);
    const shown = new Emulator(33, 7);
    await shown.write(picture?.picture ?? new Uint8Array());
    expect(stateOf(shown)).toEqual(stateOf(direct));
    await screens.close();
  });

  it("[G13] a process that says nothing is killed, and who asked has an answer in time", async () => {
    let ended = 0;
    const silent = async (): Promise<DrawerPipes> => {
      const { promise, resolve } = Promise.withResolvers<void>();
      return {
        send: async () => {},
        hear: () => {},
        ended: promise,
        end: async () => {
          ended += 1;
          resolve();
        },
      };
    };
    const screens = new Screens(silent);
    const source = new Source("silent");
    source.write("text");
    expect(await Promise.all([screens.look(source), screens.picture(source)])).toEqual([
      undefined,
      undefined,
    ]);
    await until("it is killed", () => ended > 0);
    await screens.close();
  });

  it("[G14] marks without end in one cell make neither the process nor the picture large", async () => {
    const { start, alive } = realDrawers();
    const screens = new Screens(start);
    const source = new Source("marks");
    source.write(`a${"\u0301".repeat(900_000)}\r\nafter`);
    const picture = await screens.picture(source);
    expect(picture?.offset).toBe(source.end);
    expect(picture?.picture.length).toBeLessThan(10_000);
    expect((await screens.look(source))?.text).toContain("after");
    screens.forget(source);
    await screens.close();
    expect(alive()).toBe(0);
  });
});
