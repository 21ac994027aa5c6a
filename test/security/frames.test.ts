/** What no viewer and no holder should send over a WebSocket: it ends that connection at most. */
import { readFileSync } from "node:fs";
import { join as pathOf } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { root } from "../../container/launch/paths.js";
import { terminalProtocol } from "../../src/protocol/internal/terminal-frames.ts";
import { until } from "../until.ts";
import { Attacked } from "./attacked-server.ts";
import { closeOf, join } from "./sockets.ts";

type Row = { title: string; frame: string };
const rows = JSON.parse(
  readFileSync(pathOf(root, "test", "security", "frames.json"), "utf8"),
) as Row[];

const policyViolation = 1008;
const runs = 60;
const seed = 1_118_026;

describe("frames", () => {
  const berth = Attacked.shared();
  let id: string;
  let watcher: WebSocket;
  let seen = "";

  const of = (tail = "") => `/v1/sandboxes/${id}${tail}`;
  const open = async (tail: string, protocols: string[]) => {
    const headers = { authorization: `Bearer ${berth.server.key}` };
    const { socket, status } = await join(`${berth.server.url}${of(tail)}`, { headers, protocols });
    if (socket === undefined) throw new Error(`refused with ${status}`);
    return socket;
  };
  const terminal = (protocols = [terminalProtocol]) => open("/terminals/main/connect", protocols);
  let said = 0;
  /** The program is there and obeys, and the other viewer sees it. */
  const goesOn = async () => {
    said += 1;
    watcher.send(`echo $((1000 + ${said}))-on\n`);
    await until("the echo", () => seen.includes(`${1000 + said}-on`));
  };

  beforeAll(async () => {
    id = await berth.create();
    await berth.ok("POST", of("/terminals"), { id: "main", argv: ["sh"] });
    watcher = await terminal([]);
    watcher.on("message", (bytes) => {
      seen = (seen + bytes).slice(-100_000);
    });
  });

  afterAll(() => watcher.close());

  it.each(rows)(
    "[SC19] of a terminal: $title closes the viewer who sent it, and nobody else",
    async ({ frame }) => {
      const socket = await terminal();
      const closed = closeOf(socket);
      socket.send(frame);
      expect(await closed).toBe(policyViolation);
      await goesOn();
    },
  );

  it("[SC19] random frames and bytes of a viewer end at most its connection", async () => {
    const frame = fc.oneof(
      fc.json(),
      fc.string({ unit: "binary", maxLength: 200 }),
      fc
        .record(
          {
            type: fc.constantFrom("resize", "ack", "ready", "exit"),
            cols: fc.jsonValue(),
            rows: fc.jsonValue(),
            offset: fc.jsonValue(),
          },
          { requiredKeys: ["type"] },
        )
        .map((value) => JSON.stringify(value)),
    );
    const codes: number[] = [];
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { minLength: 1, maxLength: 8 }), async (frames) => {
        const socket = await terminal();
        const closed = closeOf(socket);
        for (const frame of frames) socket.send(frame);
        socket.close();
        const code = await closed;
        codes.push(code);
        expect([policyViolation, 1005, 1000]).toContain(code);
      }),
      { numRuns: runs, seed, endOnFailure: true },
    );
    expect(codes).toHaveLength(runs);
    await goesOn();
  });

  it("[SC19] a flood of sizes and of single bytes, and one message that is too large, hold nobody up", async () => {
    const socket = await terminal();
    const ended = closeOf(socket);
    for (let n = 0; n < 10_000; n++)
      socket.send(JSON.stringify({ type: "resize", cols: 80 + (n % 5), rows: 24 }));
    for (let n = 0; n < 20_000; n++) socket.send(Buffer.from("\n"));
    await goesOn();
    expect((await berth.exec(id, { command: "echo exec" })).stdout).toBe("exec\n");
    socket.send(Buffer.from([3, 10]));
    socket.close();
    await ended;
    const large = await terminal();
    const late = closeOf(large);
    large.send(Buffer.alloc(40 * 1024 * 1024));
    large.close();
    await late;
    watcher.send(Buffer.from([3, 10]));
    await goesOn();
  });

  it("[SC19] whatever a holder of a lease sends over its socket, it holds the lease until it leaves", async () => {
    const socket = await open("/lease/connect?holder=loud", ["berth.lease.v1"]);
    await until("the lease", async () => (await berth.ok("GET", of("/lease"))).holder === "loud");
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.json(), fc.string({ unit: "binary" }), fc.constant('{"type":"granted"}')),
        async (text) => {
          socket.send(text);
          socket.send(Buffer.from(text));
        },
      ),
      { numRuns: runs, seed },
    );
    expect(socket.readyState).toBe(socket.OPEN);
    expect(await berth.ok("GET", of("/lease"))).toMatchObject({ state: "held", holder: "loud" });
    socket.close();
    await until("its end", async () => (await berth.ok("GET", of("/lease"))).state === "free");
    await goesOn();
  });
});
