import { createHash } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { kinds } from "../agent.ts";
import { Viewer } from "./terminal-socket.ts";
import { endTerminal, openTerminal, script, terminalAgent, terminalNow } from "./terminals.ts";

const MB = 1_000_000;
const raw = "stty raw -echo -onlcr";
const growthKiBMax = 32 * 1024;
/** A program that writes without end. */
const flood = ["yes", "yyyyyyyyyyyyyyy"];
const floodGrowthKiBMax = 64 * 1024;

/** Bytes that do not repeat within the length of a ring, so that a lost, doubled or moved one changes the hash. */
function patterned(bytes: number): Buffer {
  const all = Buffer.alloc(bytes);
  let state = 1;
  for (let offset = 0; offset + 4 <= bytes; offset += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    all.writeUInt32LE(state, offset);
  }
  return all;
}

describe.each(kinds)("the flow of a terminal, trees held by %s", (tree) => {
  const agent = terminalAgent(tree);
  const content = patterned(tree === "cgroup" ? 100 * MB : 20 * MB);
  const hash = createHash("sha256").update(content).digest("hex");
  beforeAll(() => writeFileSync(join(agent.workspace, "content"), content));

  /** Waits for a key, then writes all the content, then waits for another key. */
  const opened = async (id: string) => {
    const command = `${raw}; touch ${id}; read -n 1 go; cat content; read -n 1 end`;
    await openTerminal(agent, { id, argv: script(command) });
    // Before that it would echo the keys.
    await until("it is in raw mode", () => existsSync(join(agent.workspace, id)));
  };
  const hashed = (viewer: Viewer) => {
    const sum = createHash("sha256");
    viewer.take = (bytes) => sum.update(bytes);
    return sum;
  };
  const hasAll = (viewer: () => Viewer) =>
    until("all of it has come", () => viewer().offset >= content.length, 100_000);
  const withoutOthers = async (id: string) => {
    await opened(id);
    const viewer = await Viewer.open(agent, id);
    const sum = hashed(viewer);
    viewer.type("g");
    await hasAll(() => viewer);
    expect(sum.digest("hex")).toBe(hash);
    viewer.type("e");
    await viewer.ended();
    expect(viewer.exit).toMatchObject({ exitCode: 0 });
  };

  /** The others: one that is stuck, one without frames and a slow one. */
  const nextToOthers = async (id: string) => {
    await opened(id);
    const memory = agent.memoryKiB();
    const stuck = await Viewer.open(agent, id, { silent: true });
    stuck.pause();
    const deaf = await Viewer.open(agent, id, { framed: false });
    deaf.pause();
    const slow = await Viewer.open(agent, id);
    slow.pause();
    const sips = setInterval(() => {
      slow.resume();
      setImmediate(() => slow.pause());
    }, 1000);
    const fast = await Viewer.open(agent, id);
    const sum = hashed(fast);
    fast.type("g");
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, agent.memoryKiB());
    }, 50);
    // It has all of it while the others stand still.
    await hasAll(() => fast);
    clearInterval(watch);
    clearInterval(sips);
    expect(sum.digest("hex")).toBe(hash);
    expect(most).toBeGreaterThan(0);
    // What is kept for slow viewers is bounded, far below all that they have not read.
    expect(most - memory).toBeLessThan(floodGrowthKiBMax);
    // The slow ones learn that output is missing, and see the end.
    for (const viewer of [stuck, slow, deaf]) viewer.resume();
    fast.type("e");
    for (const viewer of [fast, stuck, slow, deaf]) await viewer.ended();
    expect(stuck.frames.some(({ type }) => type === "truncated")).toBe(true);
    expect(stuck.exit).toMatchObject({ exitCode: 0 });
    expect(slow.exit).toMatchObject({ exitCode: 0 });
  };

  test("[T11] output of any length reaches a viewer whole, past a stuck one and a slow one, in flat memory", {
    timeout: 900_000,
  }, async () => {
    await withoutOthers("alone");
    await nextToOthers("watched");
  });

  test("[T12] a viewer that is cut off again and again, and resumes with `after`, misses nothing", async () => {
    await opened("cut");
    let offset = 0;
    const misplaced: number[] = [];
    const check = (bytes: Buffer) => {
      if (!bytes.equals(content.subarray(offset, offset + bytes.length))) misplaced.push(offset);
      offset += bytes.length;
    };
    const stuck = await Viewer.open(agent, "cut", { silent: true });
    stuck.pause();
    let viewer = await Viewer.open(agent, "cut", { after: 0, viewer: "v" });
    viewer.take = check;
    viewer.type("g");
    let cuts = 0;
    while (viewer.offset < content.length) {
      const until = performance.now() + 20 + 60 * Math.random();
      while (performance.now() < until && viewer.offset < content.length) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      // What it has not read by then is lost with the connection.
      viewer.cut();
      viewer.take = undefined;
      viewer = await Viewer.open(agent, "cut", { after: viewer.offset, viewer: "v" });
      viewer.take = check;
      for (const early of viewer.output) check(early);
      viewer.output = [];
      cuts += 1;
      expect(viewer.snapshots).toEqual([]);
    }
    expect(viewer.frames.some(({ type }) => type === "truncated")).toBe(false);
    console.log(`${content.length / MB} MB with ${cuts} cuts`);
    expect(cuts).toBeGreaterThan(1);
    expect(misplaced.slice(0, 5)).toEqual([]);
    expect(offset).toBe(content.length);
    expect(viewer.offset).toBe(content.length);
  });

  test("[T12] a new connection with a viewer id replaces the earlier one at once, also at the limit of viewers", async () => {
    await openTerminal(agent, { id: "full", argv: flood });
    const ids = Array.from({ length: limits.terminalViewersMax }, (_, n) => `viewer-${n}`);
    const viewers = await Promise.all(
      ids.map((viewer) => Viewer.open(agent, "full", { viewer, framed: false })),
    );
    for (const viewer of viewers) viewer.take = () => {};
    await expect(Viewer.open(agent, "full", { viewer: "another" })).rejects.toThrow(/ 429 /);
    const stuck = viewers[0] as Viewer;
    const newer = await Viewer.open(agent, "full", { viewer: "viewer-0" });
    newer.take = () => {};
    await newer.frame("ready");
    await stuck.ended();
    expect(stuck.closed?.code).not.toBe(1000);
    expect((await terminalNow(agent, "full")).viewers).toBe(limits.terminalViewersMax);
    for (const viewer of [newer, ...viewers]) viewer.cut();
  });

  /** Connects a viewer to a terminal and waits until it has taken more than the ring holds. */
  const flooded = async (id: string) => {
    const viewer = await Viewer.open(agent, id);
    let seen = 0;
    viewer.take = (bytes) => {
      seen += bytes.length;
    };
    await until("it floods", () => seen > 2 * limits.terminalRingBytes);
    return viewer;
  };
  /** The offset at which a viewer has left. */
  const leave = async (id: string, leaves: () => void | Promise<void>) => {
    const { viewers } = await terminalNow(agent, id);
    await leaves();
    await until("it has left", async () => (await terminalNow(agent, id)).viewers < viewers);
    return (await terminalNow(agent, id)).offset;
  };
  const writtenSince = async (id: string, from: number) =>
    (await terminalNow(agent, id)).offset - from;

  /**
   * Expects that a terminal that waits for a viewer has written less than a ring when another one has written `bytes`
   * since. Tries again on a machine so slow that the wait is over before the check.
   */
  const waitsLonger = async (
    floods: (
      waitingId: string,
      otherId: string,
    ) => Promise<{ cutAt: number; waitingFrom: number; otherFrom: number; end?: () => void }>,
    bytes: number,
  ) => {
    for (let n = 0; n < 4; n++) {
      const [waitingId, otherId] = [`waiting${n}`, `other${n}`];
      for (const id of [waitingId, otherId]) await openTerminal(agent, { id, argv: flood });
      const { cutAt, waitingFrom, otherFrom, end } = await floods(waitingId, otherId);
      const continues = async () => (await writtenSince(otherId, otherFrom)) > bytes;
      await until("the other program continues", continues);
      const written = await writtenSince(waitingId, waitingFrom);
      const isSure = performance.now() - cutAt < limits.terminalResumeMs - 1_000;
      end?.();
      for (const id of [waitingId, otherId]) await endTerminal(agent, id);
      if (!isSure) continue;
      expect(written).toBeLessThan(limits.terminalRingBytes);
      return;
    }
    throw new Error("the machine is too slow to distinguish the two waits");
  };

  test("[T17] a viewer that closes is not waited for, as one is that was cut off", () =>
    waitsLonger(async (cutId, closedId) => {
      const closing = await flooded(closedId);
      const cutting = await flooded(cutId);
      const cutAt = performance.now();
      const waitingFrom = await leave(cutId, () => cutting.cut());
      const otherFrom = await leave(closedId, () => closing.close());
      return { cutAt, waitingFrom, otherFrom };
    }, 4 * limits.terminalRingBytes));

  test("[T18] a viewer that was cut off delays other viewers for a shorter time than it delays a program that nobody watches", () =>
    waitsLonger(async (alone, shared) => {
      const cutting = await flooded(alone);
      const waitingFrom = await leave(alone, () => cutting.cut());
      const cutAt = performance.now();
      const first = await flooded(shared);
      // Not earlier: next to a viewer that need not acknowledge, a viewer may get more snapshots than output.
      const other = await Viewer.open(agent, shared, { framed: false });
      other.take = () => {};
      const otherFrom = await leave(shared, () => first.cut());
      return { cutAt, waitingFrom, otherFrom, end: () => other.cut() };
    }, 2 * limits.terminalRingBytes));

  test("[T13] under a flood that one viewer does not read, another one's keys are echoed", async () => {
    await openTerminal(agent, { id: "flood", argv: flood });
    const stuck = await Viewer.open(agent, "flood", { framed: false });
    stuck.pause();
    const typist = await Viewer.open(agent, "flood");
    let seen = 0;
    let wanted = "A";
    let isEchoed = false;
    typist.take = (bytes) => {
      seen += bytes.length;
      isEchoed ||= bytes.includes(wanted);
    };
    await until("it floods", () => seen > 4 * limits.terminalRingBytes);
    for (let n = 0; n < 30; n++) {
      wanted = String.fromCharCode(65 + (n % 26));
      isEchoed = false;
      typist.type(wanted);
      // All the while the stuck viewer reads nothing.
      await until(`key ${n} is echoed`, () => isEchoed);
    }
    expect((await terminalNow(agent, "flood")).viewers).toBe(2);
  });

  test("[T14] a paste of a megabyte arrives whole, in order", async () => {
    const paste = patterned(limits.terminalInputBytesMax);
    const command = `${raw}; printf ready; sleep 0.3; head -c ${paste.length} | sha256sum`;
    await openTerminal(agent, { id: "paste", argv: script(command) });
    const viewer = await Viewer.open(agent, "paste");
    await viewer.shows("ready");
    viewer.type(paste);
    await viewer.ended();
    expect(viewer.text).toContain(createHash("sha256").update(paste).digest("hex"));
    expect(viewer.frames.some(({ type }) => type === "error")).toBe(false);
  });

  test("[T14] a program that does not read blocks no viewer: too much input is refused with an error", async () => {
    await openTerminal(agent, {
      id: "stopped",
      argv: script(`${raw}; printf ready; kill -STOP $$; exec cat`),
    });
    const viewer = await Viewer.open(agent, "stopped");
    const plain = await Viewer.open(agent, "stopped", { framed: false });
    await viewer.shows("ready");
    const memory = agent.memoryKiB();
    const half = Buffer.alloc(limits.terminalInputBytesMax / 2, "a");
    for (let n = 0; n < 20; n++) viewer.type(half);
    for (let n = 0; n < 20; n++) plain.type(half);
    expect(await viewer.frame("error")).toMatchObject({ code: "too_large" });
    const begun = performance.now();
    expect((await agent.sh("echo still here")).stdout).toBe("still here\n");
    console.log(`an exec next to a stopped program: ${(performance.now() - begun).toFixed(1)} ms`);
    await agent.keepsLessThan(growthKiBMax, memory);
    const { pid } = await terminalNow(agent, "stopped");
    await agent.sh(`kill -CONT ${pid}`);
    // Accepted input consists of whole messages, which arrive once the program reads again.
    await until("it reads again", () => viewer.size >= half.length);
    expect(await endTerminal(agent, "stopped")).toBe(200);
  });
});
