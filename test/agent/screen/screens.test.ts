import { describe, expect, it } from "vitest";
import { Emulator } from "../../../container/agent/terminals/screen/emulator.ts";
import type { RenderWorkerPipes } from "../../../container/agent/terminals/screen/render-client.ts";
import { Screens } from "../../../container/agent/terminals/screen/screens.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { realWorkers, Source } from "./screen-source.ts";
import { stateOf } from "./screen-state.ts";

/** A full-screen program that draws its frame once, and then one line again and again. */
const frame = "\x1b[?1049h\x1b[H\x1b[1;31mthe frame\x1b[m\x1b[5;1H";
const redraw = `\r\x1b[K\x1b[32m${"working ".repeat(4)}`;

describe("screens", () => {
  it("[G10] output that the ring has dropped is still on the screen, because it is rendered in the background", async () => {
    const { start, pids, running } = realWorkers();
    const screens = new Screens(start, 200);
    const source = new Source("one");
    source.write(frame);
    screens.onOutput(source);
    expect(pids).toEqual([]);
    // Each half of the ring is rendered before the next one comes.
    for (let half = 0; half < 6; half += 1) {
      source.write(redraw.repeat(Math.ceil(limits.terminalRingBytes / 2 / redraw.length) + 1));
      screens.onOutput(source);
      await until("a worker has started", () => pids.length === half + 1);
      await until("no worker runs", () => running() === 0);
    }
    expect(source.ring.start).toBeGreaterThan(limits.terminalRingBytes);
    const screen = await screens.screenText(source);
    expect(screen?.text.split("\n")[0]).toBe("the frame");
    expect(screen).toMatchObject({ alternate: true, offset: source.ring.end });
    await screens.close();
    expect(running()).toBe(0);
  });

  it("[G11] output that is faster than rendering is rendered only on request, and its end is right", async () => {
    const { start, running } = realWorkers();
    const screens = new Screens(start);
    const source = new Source("flood");
    const lines = `${"y".repeat(38)}\r\n`.repeat(10_000);
    for (let n = 0; n < 130; n += 1) {
      source.write(lines);
      screens.onOutput(source);
      if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(source.ring.end).toBeGreaterThan(50_000_000);
    source.write("the end");
    const snapshot = await screens.snapshot(source);
    expect(snapshot?.offset).toBe(source.ring.end);
    const shown = new Emulator(40, 10);
    await shown.write(snapshot?.bytes ?? new Uint8Array());
    expect(shown.screenText().text.split("\n")).toEqual([
      ...Array(9).fill("y".repeat(38)),
      "the end",
    ]);
    await screens.close();
    expect(running()).toBe(0);
  });

  it("[G12] each size applies from where it was set", async () => {
    const { start } = realWorkers();
    const screens = new Screens(start);
    const source = new Source("sized");
    screens.onOutput(source);
    const direct = new Emulator(40, 10);
    for (const [cols, rows] of [
      [20, 5],
      [60, 12],
      [33, 7],
    ] as const) {
      const text = `\x1b[34m${"all this is wrapped ".repeat(9)}\x1b[m\r\n`;
      source.write(text);
      screens.onOutput(source);
      await direct.write(Buffer.from(text));
      source.size = { cols, rows };
      screens.onResize(source);
      direct.resize(cols, rows);
    }
    const snapshot = await screens.snapshot(source);
    const shown = new Emulator(33, 7);
    await shown.write(snapshot?.bytes ?? new Uint8Array());
    expect(stateOf(shown)).toEqual(stateOf(direct));
    await screens.close();
  });

  it("[G13] a worker that does not respond is killed, and requests end in time", async () => {
    let ended = 0;
    const silent = async (): Promise<RenderWorkerPipes> => {
      const { promise, resolve } = Promise.withResolvers<void>();
      return {
        send: async () => {},
        listen: () => {},
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
    expect(await Promise.all([screens.screenText(source), screens.snapshot(source)])).toEqual([
      undefined,
      undefined,
    ]);
    await until("the worker is killed", () => ended > 0);
    await screens.close();
  });

  it("[G14] endless combining marks in one cell make neither the worker nor the snapshot large", async () => {
    const { start, running } = realWorkers();
    const screens = new Screens(start);
    const source = new Source("marks");
    source.write(`a${"\u0301".repeat(900_000)}\r\nafter`);
    const snapshot = await screens.snapshot(source);
    expect(snapshot?.offset).toBe(source.ring.end);
    expect(snapshot?.bytes.length).toBeLessThan(10_000);
    expect((await screens.screenText(source))?.text).toContain("after");
    screens.forget(source);
    await screens.close();
    expect(running()).toBe(0);
  });
});
