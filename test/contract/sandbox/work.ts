/**
 * Owns what callers are promised of all that runs: who may start it, when its names stop meaning anything, what is
 * told of it, and that looking at it starts nothing.
 */
import { describe, expect, it } from "vitest";
import type { GateOptions, SandboxApi } from "../../../src/protocol/api.ts";
import type { EventData } from "../../../src/protocol/event.ts";
import { wholeLog } from "./log-events.ts";
import { granted, made, refusal, refusals, saying, soon, told, type World } from "./world.ts";

const bytes = new TextEncoder().encode("x");

type Named = { process: string; session: string; terminal: string };

/** Each call that names something, and wants to know of it only. */
const looks = (box: SandboxApi, { process, session, terminal }: Named) => [
  () => box.process(process),
  () => box.waitForProcess(process, { timeoutMs: 0 }),
  () => wholeLog(box, process),
  () => box.session(session),
  () => box.terminal(terminal),
  () => box.terminalScreen(terminal),
];

const changes = (box: SandboxApi, { process, session }: Named, options: GateOptions = {}) => [
  () => box.writeStdin(process, bytes, options),
  () => box.signalProcess(process, "SIGCONT", options),
  () => box.execInSession(session, { command: "true" }, options),
  () => box.startProcessInSession(session, { command: "true" }, options),
  () => box.endSession(session, options),
  () => box.endProcess(process, options),
];

const makes = (box: SandboxApi, options: GateOptions = {}) => [
  () => box.startProcess({ command: "true" }, options),
  () => box.createSession({}, options),
  () => box.createTerminal({ argv: ["sleep", "60"] }, options),
];

async function begun(box: SandboxApi, options: GateOptions = {}): Promise<Named> {
  const process = await box.startProcess({ argv: ["cat"] }, options);
  const session = await box.createSession({}, options);
  const terminal = await box.createTerminal({ argv: ["cat"] }, options);
  return { process: process.id, session: session.id, terminal: terminal.id };
}

export function workContract(world: World): void {
  describe("what runs in a sandbox", () => {
    it("[Y49] is started and changed by nobody but the holder, while there is one", async () => {
      const { box } = await made(world);
      const named = await begun(box);
      const { token } = granted(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
      const gated = [...makes(box), ...changes(box, named)];
      for (const refused of await refusals(gated.map((call) => call()))) {
        expect(refused).toMatchObject({ code: "lease_held", facts: { holder: "one" } });
      }
      for (const look of looks(box, named)) await look();
      await box.resizeTerminal(named.terminal, { cols: 100, rows: 30 });
      const has = async () => [
        (await box.processes()).processes.length,
        (await box.sessions()).sessions.length,
        (await box.terminals()).terminals.length,
      ];
      expect(await has()).toEqual([1, 1, 1]);
      const lease = { lease: token };
      for (const call of [...makes(box, lease), ...changes(box, named, lease)]) await call();
      expect(await has()).toEqual([3, 1, 2]);
      await box.endTerminal(named.terminal);
      expect((await box.lease()).holder).toBe("one");
      await box.releaseLease(token);
    });

    it("[Y49] goes on under the next holder, where it was started before", async () => {
      const { box } = await made(world);
      const { token } = granted(await box.acquireLease({ holder: "one" }));
      const { process, terminal } = await begun(box, { lease: token });
      await box.breakLease("another needs it");
      const next = granted(await box.acquireLease({ holder: "two", waitMs: 20_000 }));
      expect((await box.process(process)).state).toBe("running");
      expect((await box.terminal(terminal)).id).toBe(terminal);
      expect((await box.endProcess(process, { lease: next.token })).state).toBe("exited");
    });

    it("[Y55] ends with the lease where it was started so, before the next one holds it", async () => {
      const { id, box } = await made(world);
      const call = { argv: ["sleep", "60"], endsWithLease: true };
      for (const start of [box.startProcess, box.createTerminal]) {
        expect(await refusal(start(call))).toMatchObject({
          code: "bad_request",
          facts: { field: "endsWithLease" },
        });
      }
      const { token } = granted(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
      const process = await box.startProcess(call, { lease: token });
      const terminal = await box.createTerminal(call, { lease: token });
      await soon(async () => {
        const facts = { running: 2 };
        expect(await refusal(box.releaseLease(token))).toMatchObject({ code: "lease_busy", facts });
      });
      await box.breakLease("another needs it");
      const next = granted(await box.acquireLease({ holder: "two", waitMs: 20_000 }));
      expect((await world.inside(id)).running).toBe(0);
      const lease = { lease: next.token };
      expect((await box.endProcess(process.id, lease)).state).toBe("exited");
      expect((await refusal(box.terminal(terminal.id))).code).toBe("not_found");
      await soon(async () => {
        for (const kind of ["process", "terminal"] as const) {
          expect((await told(box, kind)).at(-1)).toMatchObject({
            what: "ended",
            reason: "lease_lost",
          });
        }
      });
    });

    it("[Y50] has names that mean nothing in another life of the container", async () => {
      const { box } = await made(world);
      const named = await begun(box);
      await box.createSession({ id: "mine" });
      await box.createTerminal({ id: "mine", argv: ["cat"] });
      await box.pause({ force: true });
      await box.start();
      const stale = [...looks(box, named), ...changes(box, named)];
      stale.push(
        () => box.endTerminal(named.terminal),
        () => box.resizeTerminal(named.terminal, { cols: 80, rows: 24 }),
      );
      for (const refused of await refusals(stale.map((call) => call()))) {
        expect(refused.code).toBe("stale_handle");
      }
      const chosen = [
        () => box.session("mine"),
        () => box.execInSession("mine", { command: "true" }),
        () => box.terminal("mine"),
        () => box.process("mine"),
      ];
      for (const refused of await refusals(chosen.map((call) => call()))) {
        expect(refused.code).toBe("not_found");
      }
      expect((await refusal(box.createSession({ id: named.session }))).code).toBe("stale_handle");
      expect(await box.processes()).toEqual({ processes: [], nextCursor: null });
      expect((await box.createSession({ id: "mine" })).id).toBe("mine");
    });

    it("[Y51] is looked at without waking a container", async () => {
      const { id, box } = await made(world);
      const named = await begun(box);
      await box.pause({ force: true });
      const { starts } = await world.inside(id);
      expect(starts.length).toBe(1);
      expect(await box.processes()).toEqual({ processes: [], nextCursor: null });
      expect(await box.sessions()).toEqual({ sessions: [], nextCursor: null });
      expect(await box.terminals()).toEqual({ terminals: [], nextCursor: null });
      for (const refused of await refusals(looks(box, named).map((call) => call()))) {
        expect(refused.code).toBe("stale_handle");
      }
      expect((await refusal(box.process("other"))).code).toBe("not_found");
      expect((await refusal(box.endTerminal("other"))).code).toBe("not_found");
      const unwilling = makes(box, { wake: false }).map((call) => call());
      for (const { code } of await refusals(unwilling)) expect(code).toBe("not_running");
      expect((await box.get()).state).toBe("paused");
      expect((await world.inside(id)).starts).toEqual(starts);
      expect((await box.startProcess({ command: "true" })).id).not.toBe(named.process);
      expect((await box.get()).state).toBe("running");
    });

    it("[Y52] is told in the events, when it starts and when it has ended", async () => {
      const { box } = await made(world);
      const named = await begun(box);
      const short = await box.startProcess({ command: "exit 3" });
      await box.waitForProcess(short.id);
      await box.endProcess(named.process);
      await box.endTerminal(named.terminal);
      await box.endSession(named.session);
      const isOfWork = (event: EventData) =>
        ["process", "session", "terminal"].includes(event.type);
      await soon(async () => {
        const { events } = await box.events({ limit: 1000 });
        const told = events.map(({ event }) => event).filter(isOfWork);
        const what = (id: string) => told.filter((event) => "id" in event && event.id === id);
        for (const [type, id] of Object.entries(named)) {
          expect(what(id)).toMatchObject([
            { type, what: "started" },
            { type, what: "ended", reason: "ended" },
          ]);
        }
        expect(what(short.id)).toMatchObject([
          { type: "process", what: "started" },
          { type: "process", what: "ended", reason: "exited", exitCode: 3, signal: null },
        ]);
      });
    });

    saying(
      world,
      "clock",
      "ring",
    )("[Y53] keeps the sandbox from being idle", async () => {
      const { id, box } = await made(world, { idleTimeoutMs: 60_000 });
      const since = Date.parse((await box.get()).stateSince);
      const process = await box.startProcess({ argv: ["sleep", "60"] });
      const looksAt = async (ms: number) => {
        world.clock(since + ms);
        await world.ring(id);
        return (await box.get()).state;
      };
      expect(await looksAt(70_000)).toBe("running");
      await box.createSession({ id: "one" });
      await box.endProcess(process.id);
      expect(await looksAt(120_000)).toBe("running");
      expect(await looksAt(200_000)).toBe("paused");
    });
  });
}
