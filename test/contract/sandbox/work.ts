/**
 * The contract of everything that runs: who may start it, how long its ids are valid, which events report it, and that
 * reading it starts nothing.
 */
import { describe, expect, it } from "vitest";
import type { GateOptions, SandboxApi } from "../../../src/protocol/api.ts";
import type { EventData } from "../../../src/protocol/event.ts";
import { wholeLog } from "./log-events.ts";
import {
  acquireLease,
  createSandbox,
  eventsOfType,
  eventually,
  expectRefusal,
  expectRefusals,
  itWith,
  type World,
} from "./world.ts";

const bytes = new TextEncoder().encode("x");

type StartedWork = { process: string; session: string; terminal: string };

/** Each read that names something. */
const reads = (box: SandboxApi, { process, session, terminal }: StartedWork) => [
  () => box.process(process),
  () => box.waitForProcess(process, { timeoutMs: 0 }),
  () => wholeLog(box, process),
  () => box.session(session),
  () => box.terminal(terminal),
  () => box.terminalScreen(terminal),
];

const changes = (box: SandboxApi, { process, session }: StartedWork, options: GateOptions = {}) => [
  () => box.writeStdin(process, bytes, options),
  () => box.signalProcess(process, "SIGCONT", options),
  () => box.execInSession(session, { command: "true" }, options),
  () => box.startProcessInSession(session, { command: "true" }, options),
  () => box.endSession(session, options),
  () => box.endProcess(process, options),
];

const starts = (box: SandboxApi, options: GateOptions = {}) => [
  () => box.startProcess({ command: "true" }, options),
  () => box.createSession({}, options),
  () => box.createTerminal({ argv: ["sleep", "60"] }, options),
];

async function startWork(box: SandboxApi, options: GateOptions = {}): Promise<StartedWork> {
  const process = await box.startProcess({ argv: ["cat"] }, options);
  const session = await box.createSession({}, options);
  const terminal = await box.createTerminal({ argv: ["cat"] }, options);
  return { process: process.id, session: session.id, terminal: terminal.id };
}

export function workContract(world: World): void {
  describe("what runs in a sandbox", () => {
    it("[Y49] is started and changed only by the holder while there is one", async () => {
      const { box } = await createSandbox(world);
      const started = await startWork(box);
      const { token } = acquireLease(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
      const gated = [...starts(box), ...changes(box, started)];
      await expectRefusals(gated, "lease_held", { holder: "one" });
      for (const read of reads(box, started)) await read();
      await box.resizeTerminal(started.terminal, { cols: 100, rows: 30 });
      const has = async () => [
        (await box.processes()).processes.length,
        (await box.sessions()).sessions.length,
        (await box.terminals()).terminals.length,
      ];
      expect(await has()).toEqual([1, 1, 1]);
      const lease = { lease: token };
      for (const call of [...starts(box, lease), ...changes(box, started, lease)]) await call();
      expect(await has()).toEqual([3, 1, 2]);
      await box.endTerminal(started.terminal);
      expect((await box.lease()).holder).toBe("one");
      await box.releaseLease(token);
    });

    it("[Y49] continues under the next holder if it was started before", async () => {
      const { box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      const { process, terminal } = await startWork(box, { lease: token });
      await box.breakLease("another needs it");
      const next = acquireLease(await box.acquireLease({ holder: "two", waitMs: 20_000 }));
      expect((await box.process(process)).state).toBe("running");
      expect((await box.terminal(terminal)).id).toBe(terminal);
      expect((await box.endProcess(process, { lease: next.token })).state).toBe("exited");
    });

    it("[Y55] with `endsWithLease` ends before the next holder begins", async () => {
      const { id, box } = await createSandbox(world);
      const call = { argv: ["sleep", "60"], endsWithLease: true };
      for (const start of [box.startProcess, box.createTerminal]) {
        await expectRefusal(start(call), "bad_request", { field: "endsWithLease" });
      }
      const { token } = acquireLease(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
      const process = await box.startProcess(call, { lease: token });
      const terminal = await box.createTerminal(call, { lease: token });
      await eventually(async () => {
        const facts = { running: 2 };
        await expectRefusal(box.releaseLease(token), "lease_busy", facts);
      });
      await box.breakLease("another needs it");
      const next = acquireLease(await box.acquireLease({ holder: "two", waitMs: 20_000 }));
      expect((await world.inside(id)).running).toBe(0);
      const lease = { lease: next.token };
      expect((await box.endProcess(process.id, lease)).state).toBe("exited");
      await expectRefusal(box.terminal(terminal.id), "not_found");
      await eventually(async () => {
        for (const kind of ["process", "terminal"] as const) {
          expect((await eventsOfType(box, kind)).at(-1)).toMatchObject({
            what: "ended",
            reason: "lease_lost",
          });
        }
      });
    });

    it("[Y50] has ids that are invalid in another incarnation", async () => {
      const { box } = await createSandbox(world);
      const started = await startWork(box);
      await box.createSession({ id: "mine" });
      await box.createTerminal({ id: "mine", argv: ["cat"] });
      await box.pause({ force: true });
      await box.start();
      const stale = [...reads(box, started), ...changes(box, started)];
      stale.push(
        () => box.endTerminal(started.terminal),
        () => box.resizeTerminal(started.terminal, { cols: 80, rows: 24 }),
      );
      await expectRefusals(stale, "stale_handle");
      const chosen = [
        () => box.session("mine"),
        () => box.execInSession("mine", { command: "true" }),
        () => box.terminal("mine"),
        () => box.process("mine"),
      ];
      await expectRefusals(chosen, "not_found");
      await expectRefusal(box.createSession({ id: started.session }), "stale_handle");
      expect(await box.processes()).toEqual({ processes: [], nextCursor: null });
      expect((await box.createSession({ id: "mine" })).id).toBe("mine");
    });

    it("[Y51] is read without waking a container", async () => {
      const { id, box } = await createSandbox(world);
      const started = await startWork(box);
      await box.pause({ force: true });
      const { starts: startsBefore } = await world.inside(id);
      expect(startsBefore.length).toBe(1);
      expect(await box.processes()).toEqual({ processes: [], nextCursor: null });
      expect(await box.sessions()).toEqual({ sessions: [], nextCursor: null });
      expect(await box.terminals()).toEqual({ terminals: [], nextCursor: null });
      await expectRefusals(reads(box, started), "stale_handle");
      await expectRefusal(box.process("other"), "not_found");
      await expectRefusal(box.endTerminal("other"), "not_found");
      const unwilling = starts(box, { wake: false }).map((call) => call());
      await expectRefusals(unwilling, "not_running");
      expect((await box.get()).state).toBe("paused");
      expect((await world.inside(id)).starts).toEqual(startsBefore);
      expect((await box.startProcess({ command: "true" })).id).not.toBe(started.process);
      expect((await box.get()).state).toBe("running");
    });

    it("[Y52] is reported by events when it starts and ends", async () => {
      const { box } = await createSandbox(world);
      const started = await startWork(box);
      const short = await box.startProcess({ command: "exit 3" });
      await box.waitForProcess(short.id);
      await box.endProcess(started.process);
      await box.endTerminal(started.terminal);
      await box.endSession(started.session);
      const isOfWork = (event: EventData) =>
        ["process", "session", "terminal"].includes(event.type);
      await eventually(async () => {
        const { events } = await box.events({ limit: 1000 });
        const workEvents = events.map(({ event }) => event).filter(isOfWork);
        const what = (id: string) => workEvents.filter((event) => "id" in event && event.id === id);
        for (const [type, id] of Object.entries(started)) {
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

    itWith(
      world,
      "clock",
      "ring",
    )("[Y53] keeps the sandbox from being idle", async () => {
      const { id, box } = await createSandbox(world, { idleTimeoutMs: 60_000 });
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
