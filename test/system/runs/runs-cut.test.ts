import { createHash } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import type { Viewer } from "../../agent/terminals/terminal-socket.ts";
import { randomOf } from "../../linearizability/history.ts";
import { until } from "../../until.ts";
import { sharedServerOfFile } from "../shared-server.ts";
import { digestOf, isFull, openViewer, Runs, readUntilCut } from "./runs.ts";

vi.setConfig({ testTimeout: 300_000 });

const MB = 1_000_000;
const bytes = (isFull ? 100 : 40) * MB;
const printed = `seq 1 99999999 | head -c ${bytes}`;
const cutsMin = 20;
/** By bytes too: a fast machine would be at the end before it was cut often. */
const uncutBytesMax = bytes / 25;

const server = await sharedServerOfFile();
const runs = await Runs.in(server);
const expected = await digestOf(printed);

describe("readers that are cut off at random", () => {
  it("[M2] a follower of a process that waits for its readers, cut off about every 50 ms, reads the same as one that is not", async () => {
    const expectedHash = createHash("sha256");
    const uncut = await runs.start({ command: printed, onFull: "block" });
    const read = { bytes: bytes * 2, ms: 200_000 };
    const never = await readUntilCut(
      (signal) => runs.bytes(uncut.id, 0, signal),
      read,
      (some) => expectedHash.update(some),
    );
    expect(never).toBe("whole");
    expect(expectedHash.digest("hex")).toBe(expected);

    const random = randomOf(7);
    const hash = createHash("sha256");
    const { id } = await runs.start({ command: printed, onFull: "block" });
    let [offset, cuts, refusals] = [0, 0, 0];
    const isOver = async () => {
      const cut = { bytes: random(uncutBytesMax), ms: 10 + random(90) };
      const ended = await readUntilCut(
        (signal) => runs.bytes(id, offset, signal),
        cut,
        (some) => {
          hash.update(some);
          offset += some.length;
        },
      );
      if (ended === "cut") cuts += 1;
      if (ended === "refused") refusals += 1;
      return ended === "whole";
    };
    await until("it is read to its end", isOver, 200_000);
    expect(cuts).toBeGreaterThan(cutsMin);
    expect(offset).toBe(bytes);
    expect(hash.digest("hex")).toBe(expected);
    expect(await runs.exited(id)).toMatchObject({ exitCode: 0, log: { stdoutBytes: bytes } });
    console.log(JSON.stringify({ cuts, refusals }));
  });

  it("[M3] a viewer of a terminal that is cut off and comes back with `after` sees every byte once, and the exit", async () => {
    const random = randomOf(9);
    const hash = createHash("sha256");
    const wait = "head -c 1 >/dev/null";
    const argv = ["sh", "-c", `stty raw -echo; echo up; ${wait}; ${printed}; ${wait}; exit 5`];
    const { status } = await runs.call("POST", "terminals", { id: "cut", argv });
    expect(status).toBe(201);
    const path = `${runs.id}/terminals/cut`;
    let viewer = await openViewer(server, path, { after: 0 });
    const begin = "up\n".length;
    await until("it is up", () => viewer.offset >= begin);
    viewer.type("x");

    let [offset, cuts] = [begin, 0];
    viewer.cut();
    while (offset < begin + bytes) {
      const limit = offset + random(uncutBytesMax);
      const take = (some: Uint8Array, from: Viewer) => {
        hash.update(some);
        offset += some.length;
        if (offset > limit && offset < begin + bytes) from.cut();
      };
      viewer = await openViewer(server, path, { after: offset, take });
      const timer = setTimeout(() => viewer.cut(), 10 + random(90));
      const isOver = () => viewer.closed !== undefined || offset >= begin + bytes;
      await until("it is cut off", isOver, 60_000);
      clearTimeout(timer);
      expect(viewer.frames.map(({ type }) => type)).toEqual(
        viewer.frames.length === 0 ? [] : ["ready"],
      );
      cuts += 1;
    }
    viewer.cut();
    expect(cuts).toBeGreaterThan(cutsMin);
    expect(offset).toBe(begin + bytes);
    expect(hash.digest("hex")).toBe(expected);
    viewer = await openViewer(server, path, { after: offset });
    viewer.type("x");
    await until("it has exited", () => viewer.closed !== undefined);
    expect(viewer.frames.at(-1)).toEqual({ type: "exit", exitCode: 5, signal: null });
    expect(viewer.closed?.code).toBe(1000);
    expect((await runs.call("GET", "terminals")).body.terminals).toEqual([]);
    console.log(JSON.stringify({ cuts }));
  });
});
