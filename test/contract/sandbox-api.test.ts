import { afterEach, describe, vi } from "vitest";
import { FakeBerth } from "../fakes/berth.ts";
import { sandboxApiContract, type World } from "./sandbox-api.ts";

function inMemory(berth: FakeBerth, can: World["can"]): World {
  return {
    can,
    berth: berth.bind({ tenant: "local" }),
    other: berth.bind({ tenant: "other" }),
    leaser: async (id) => berth.bind({ tenant: "local", rights: ["read", "lease"] }).sandbox(id),
    async inside(id) {
      const { agent, calls } = berth.container(id);
      return {
        alive: agent !== undefined,
        ran: [...(agent?.commandsRun ?? [])],
        running: agent?.running.size ?? 0,
        starts: calls.filter((verb) => verb.startsWith("start")),
        metadata: { ...agent?.metadata.metadata },
        copied: agent?.metadata.version ?? 0,
      };
    },
    async holdStarts(id) {
      berth.container(id).fault = { verb: "start", hold: true };
    },
    async goOn(id) {
      berth.container(id).release();
    },
    evict: (id) => berth.evict(id),
    clock(now) {
      vi.useFakeTimers({ toFake: ["Date"], now });
    },
    async fillEvents(id, count) {
      berth.rows(
        id,
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       INSERT INTO event (at, data) SELECT ?, '{"type":"tokens","what":"revoked"}' FROM n`,
        count,
        Date.now(),
      );
    },
    ring: (id) => berth.ringAlarm(id),
    connect: () => Promise.reject(new Error("it knows no sockets")),
  };
}

/** Boots and saves at once: the contract waits for them in real time. */
function onPlatform(): FakeBerth {
  const berth = new FakeBerth(undefined, { platform: true });
  berth.onMachine = (machine) => Object.assign(machine, { bootMs: 1, snapshotMs: 5 });
  return berth;
}

afterEach(() => {
  vi.useRealTimers();
});

describe("a Berth in memory", () =>
  sandboxApiContract(
    inMemory(
      new FakeBerth(),
      new Set(["clock", "compare", "evict", "fillEvents", "holdStarts", "ran", "ring"]),
    ),
  ));

/** Its trees cannot be compared, and its starts not held. */
describe("[CF15] a Berth in memory on the platform", () =>
  sandboxApiContract(
    inMemory(onPlatform(), new Set(["clock", "evict", "fillEvents", "ran", "ring"])),
  ));
