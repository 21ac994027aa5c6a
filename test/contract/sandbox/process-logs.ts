/** The contract of process logs: cursors, completeness, bounds. */
import { describe, expect, it } from "vitest";
import { logOf, rawLog, textOf, wholeLog } from "./log-events.ts";
import { createSandbox, eventually, expectRefusal, type World } from "./world.ts";

const lines = (count: number) => Array.from({ length: count }, (_, n) => `${n + 1}\n`).join("");
const bytesMax = 64 * 1024;

export function processLogContract(world: World): void {
  describe("the log of a process", () => {
    it("[Y37] holds both streams, each in its order, and ends with the exit", async () => {
      const { box } = await createSandbox(world);
      const command = "seq 500; echo oops >&2; seq 500; echo again >&2; exit 7";
      const { id } = await box.startProcess({ command });
      const events = await wholeLog(box, id, { follow: true });
      expect(textOf(events, "stdout")).toBe(lines(500).repeat(2));
      expect(textOf(events, "stderr")).toBe("oops\nagain\n");
      expect(events.at(-1)).toEqual({ event: "exit", exitCode: 7, signal: null, timedOut: false });
      const only = await wholeLog(box, id, { stream: "stderr" });
      expect(textOf(only)).toBe("oops\nagain\n");
      expect(await rawLog(box, id, { stream: "stderr" })).toBe("oops\nagain\n");
    });

    it("[Y37] resumes after any cursor, without loss or repeat", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.startProcess({ command: "seq 20000; sleep 0.2; seq 20000" });
      let text = "";
      let cursor = 0;
      let cuts = 0;
      for (let over = false; !over; ) {
        let chunks = 0;
        over = true;
        for await (const event of logOf(box, id, { after: cursor, follow: true })) {
          if (event.event === "exit") break;
          expect(event.event).toBe("output");
          text += textOf([event]);
          cursor = event.cursor;
          chunks++;
          if (chunks === 2) {
            over = false;
            cuts++;
            break;
          }
        }
      }
      expect(cuts).toBeGreaterThan(1);
      const all = lines(20_000).repeat(2);
      expect(text.length).toBe(all.length);
      expect(text).toBe(all);
      expect(cursor).toBe(all.length);
      const middle = Math.floor(all.length / 2);
      expect(textOf(await wholeLog(box, id, { after: middle }))).toBe(all.slice(middle));
    });

    it("[Y37] comes as raw bytes too, from any offset", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.startProcess({ command: "echo oops >&2; seq 20000" });
      const all = lines(20_000);
      expect(await rawLog(box, id, { follow: true })).toBe(all);
      expect(await rawLog(box, id, { offset: 70_001 })).toBe(all.slice(70_001));
      expect(await rawLog(box, id, { offset: all.length })).toBe("");
      await expectRefusal(rawLog(box, id, { offset: all.length + 1 }), "bad_request", {
        field: "offset",
      });
      await expectRefusal(wholeLog(box, id, { after: all.length + 6 }), "bad_request", {
        field: "after",
      });
    });

    it("[Y38] drops the oldest output when it is full, and says so", async () => {
      const { box } = await createSandbox(world);
      const call = { command: "seq 40000", logBytesMax: bytesMax };
      const { id } = await box.startProcess(call);
      const { log } = (await box.waitForProcess(id)).process;
      const all = lines(40_000);
      expect(log).toMatchObject({ end: all.length, bytesMax, onFull: "drop" });
      expect(log.start).toBeGreaterThanOrEqual(all.length - bytesMax);
      expect(log.start).toBeLessThan(all.length);
      const events = await wholeLog(box, id);
      expect(events[0]).toEqual({ event: "truncated", cursor: log.start });
      expect(textOf(events)).toBe(all.slice(log.start));
      expect(events.filter(({ event }) => event === "truncated")).toHaveLength(1);
    });

    it("[Y38] blocks the process instead, if requested", async () => {
      const { box } = await createSandbox(world);
      // Far more than pipes and buffers hold, also on a busy machine.
      const call = { command: "seq 200000", logBytesMax: bytesMax, onFull: "block" } as const;
      const { id } = await box.startProcess(call);
      await eventually(async () =>
        expect((await box.process(id)).log.end).toBeGreaterThan(bytesMax / 2),
      );
      expect((await box.waitForProcess(id, { timeoutMs: 200 })).met).toBe(false);
      const all = lines(200_000);
      expect((await box.process(id)).log.end).toBeLessThan(all.length);
      expect(textOf(await wholeLog(box, id, { follow: true }))).toBe(all);
      expect((await box.process(id)).exitCode).toBe(0);
    });

    it("[Y38] allows a blocked process to be ended", async () => {
      const { box } = await createSandbox(world);
      const call = { command: "seq 40000", logBytesMax: bytesMax, onFull: "block" } as const;
      const { id } = await box.startProcess(call);
      await eventually(async () =>
        expect((await box.process(id)).log.end).toBeGreaterThan(bytesMax / 2),
      );
      expect((await box.endProcess(id)).state).toBe("exited");
    });
  });
}
