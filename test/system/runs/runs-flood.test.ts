import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { until } from "../../until.ts";
import { sharedServerOfFile } from "../shared-server.ts";
import { openViewer, privateMiB, Runs } from "./runs.ts";

/** How long the flood lasts; a person may ask for more. */
const floodMs = Number(process.env.FLOOD_MS ?? 4_000);
const keyEveryMs = 100;
/** Only a hang meets it: each key is waited for. */
const echoMs = 20_000;
const grownMiBMax = 64;

const server = await sharedServerOfFile();
const runs = await Runs.in(server);

describe("a flood of output with stuck viewers", () => {
  it("[M5] with `yes` in a terminal and one stuck viewer in each protocol, another viewer still sees each of its keys echoed", {
    timeout: floodMs * 4 + 120_000,
  }, async () => {
    await runs.call("POST", "terminals", { id: "flood", argv: ["sh", "-c", "read _; exec yes"] });
    const path = `${runs.id}/terminals/flood`;
    const stuck = [
      await openViewer(server, path),
      await openViewer(server, path, { framed: false }),
    ];
    for (const other of stuck) other.pause();
    let echoed = 0;
    let seen = 0;
    const take = (bytes: Buffer) => {
      seen += bytes.length;
      for (let index = bytes.indexOf("x"); index >= 0; index = bytes.indexOf("x", index + 1))
        echoed += 1;
    };
    const viewer = await openViewer(server, path, { take });
    viewer.type("\n");
    await until("the flood runs", () => seen > 4 * 1024 * 1024);
    const { pid } = server.workerd;
    const before = { agent: privateMiB(runs.agent), workerd: privateMiB(pid), seen };

    const times: number[] = [];
    const end = performance.now() + floodMs;
    while (performance.now() < end) {
      const [begun, had] = [performance.now(), echoed];
      viewer.type("x");
      while (echoed === had && performance.now() < begun + echoMs) await pause(1);
      expect(echoed, "the key is echoed, once").toBe(had + 1);
      times.push(performance.now() - begun);
      await pause(keyEveryMs);
    }
    times.sort((a, b) => a - b);
    const grown = {
      agent: privateMiB(runs.agent) - before.agent,
      workerd: privateMiB(pid) - before.workerd,
    };
    const [middle, worst] = [times[times.length >> 1], times.at(-1)].map((ms) =>
      Math.round(ms ?? 0),
    );
    const MB = Math.round((seen - before.seen) / 1e6);
    console.log(JSON.stringify({ keys: times.length, middle, worst, MB, grown }));
    expect(times.length).toBeGreaterThan(5);
    // They were stuck, and it was a flood.
    for (const other of stuck) expect(other.size).toBeLessThan(seen / 4);
    expect(MB).toBeGreaterThan(1);
    expect(grown.agent).toBeLessThan(grownMiBMax);
    // If it kept what they do not read, it would grow by twice the flood; when it collects garbage is its own choice.
    expect(grown.workerd).toBeLessThan(Math.max(2 * grownMiBMax, MB));

    for (const other of [...stuck, viewer]) other.cut();
    expect((await runs.call("DELETE", "terminals/flood")).status).toBe(200);
    await until("its PTY is closed", () => runs.ptys() === 0);
  });
});
