/** The contract of named processes: one runs under a name, and one call replaces it. */
import { describe, expect, it } from "vitest";
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

const argv = ["sleep", "60"];
const ifRunning = "replace" as const;

export function processNameContract(world: World): void {
  const itEvicting = itWith(world, "evict");
  describe("a process with a name", () => {
    it("[Y59] has its name alone while it runs, and others learn its id", async () => {
      const { box } = await createSandbox(world);
      const first = await box.startProcess({ name: "web", argv });
      expect(first).toMatchObject({ name: "web", state: "running" });
      await expectRefusal(box.startProcess({ name: "web", argv: ["true"] }), "name_taken", {
        name: "web",
        id: first.id,
      });
      const other = await box.startProcess({ name: "db", argv });
      await box.endProcess(first.id);
      const two = await box.startProcess({ name: "web", argv });
      const ids = async (query: Parameters<typeof box.processes>[0]) =>
        (await box.processes(query)).processes.map(({ id }) => id);
      expect(await ids({ name: "web" })).toEqual([two.id, first.id]);
      expect(await ids({ name: "web", state: "running" })).toEqual([two.id]);
      expect(await ids({ name: "nobody" })).toEqual([]);
      expect(await ids({})).toEqual([two.id, other.id, first.id]);
      expect((await box.process(first.id)).name).toBe("web");
    });

    it("[Y59] is refused if its name is malformed, or if a replacement has no name", async () => {
      const { box } = await createSandbox(world);
      for (const name of ["", "a b", "-a", "x".repeat(65)]) {
        await expectRefusal(box.startProcess({ name, argv }), "bad_request", { field: "name" });
      }
      await expectRefusal(box.startProcess({ argv, ifRunning }), "bad_request", {
        field: "ifRunning",
      });
      await expectRefusal(box.processes({ name: "" }), "bad_request");
      expect((await box.processes()).processes).toEqual([]);
    });

    it("[Y60] replaces the running one, which has ended by then, and events report it", async () => {
      const { box } = await createSandbox(world);
      const first = await box.startProcess({ name: "web", argv, ifRunning });
      const two = await box.startProcess({ name: "web", argv, ifRunning });
      expect(two.id).not.toBe(first.id);
      expect(await box.process(first.id)).toMatchObject({ state: "exited", signal: "SIGTERM" });
      expect(two.state).toBe("running");
      await eventually(async () => {
        const events = (await eventsOfType(box, "process")).filter(({ id }) => id === first.id);
        expect(events).toMatchObject([{ what: "started" }, { what: "ended", reason: "ended" }]);
      });
    });

    it("[Y60] is one of many concurrent replacements, and each caller gets its own", async () => {
      const { box } = await createSandbox(world);
      const calls = Array.from({ length: 10 }, () =>
        box.startProcess({ name: "web", argv, ifRunning }),
      );
      const own = (await Promise.all(calls)).map(({ id }) => id);
      expect(new Set(own).size).toBe(10);
      const { processes } = await box.processes({ name: "web" });
      expect(processes.map(({ id }) => id).sort()).toEqual([...own].sort());
      expect(processes.filter(({ state }) => state === "running")).toHaveLength(1);
    });

    it("[Y60] is not affected by a replacement that cannot start", async () => {
      const { box } = await createSandbox(world);
      const first = await box.startProcess({ name: "web", argv });
      const nowhere = box.startProcess({ name: "web", argv, cwd: "/no/such", ifRunning });
      await expectRefusal(nowhere, "bad_cwd");
      const program = ["no-such-program"];
      const failed = await box.startProcess({ name: "web", argv: program, ifRunning });
      expect((await box.waitForProcess(failed.id)).process).toMatchObject({ exitCode: 127 });
      const { token } = acquireLease(await box.acquireLease({ holder: "other" }));
      const unleased = box.startProcess({ name: "web", argv, ifRunning });
      await expectRefusal(unleased, "lease_held");
      expect((await box.process(first.id)).state).toBe("running");
      const lease = { lease: token };
      const two = await box.startProcess({ name: "web", argv, ifRunning }, lease);
      expect((await box.process(first.id)).state).toBe("exited");
      expect((await box.process(two.id)).state).toBe("running");
    });

    it("[Y60] replaces in a session as without one", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession();
      await box.execInSession(id, { command: "cd /tmp" });
      const first = await box.startProcess({ name: "web", argv });
      const call = { name: "web", command: "pwd; sleep 60" };
      await expectRefusal(box.startProcessInSession(id, call), "name_taken");
      const two = await box.startProcessInSession(id, { ...call, ifRunning });
      expect(two).toMatchObject({ name: "web", sessionId: id, cwd: "/tmp", state: "running" });
      expect((await box.process(first.id)).state).toBe("exited");
      const three = await box.startProcess({ name: "web", argv, ifRunning });
      expect((await box.process(two.id)).state).toBe("exited");
      expect((await box.process(three.id)).state).toBe("running");
    });

    it("[Y60] no longer counts for the lease of what it replaced", async () => {
      const { box } = await createSandbox(world);
      const { token } = acquireLease(await box.acquireLease({ holder: "one", ttlMs: 300_000 }));
      const lease = { lease: token };
      await box.startProcess({ name: "web", argv, endsWithLease: true }, lease);
      await eventually(async () => {
        await expectRefusal(box.releaseLease(token), "lease_busy");
      });
      const two = await box.startProcess({ name: "web", argv, ifRunning }, lease);
      await eventually(async () => void (await box.releaseLease(token)));
      expect((await box.process(two.id)).state).toBe("running");
    });

    it("[Y61] replaces once, however often the call comes with its key", async () => {
      const { box } = await createSandbox(world);
      const first = await box.startProcess({ name: "web", argv });
      const key = { idempotencyKey: "deploy-1" };
      const call = { name: "web", argv, ifRunning };
      const calls = Array.from({ length: 5 }, () => box.startProcess(call, key));
      const ids = new Set((await Promise.all(calls)).map(({ id }) => id));
      expect(ids.size).toBe(1);
      const [two = ""] = ids;
      expect((await box.process(first.id)).state).toBe("exited");
      expect((await box.startProcess(call, key)).state).toBe("running");
      const three = await box.startProcess(call);
      expect(await box.startProcess(call, key)).toMatchObject({ id: two, state: "exited" });
      expect((await box.process(three.id)).state).toBe("running");
      expect((await box.processes({ name: "web" })).processes).toHaveLength(3);
    });

    it("[Y61] refused because of its name leaves its key free", async () => {
      const { box } = await createSandbox(world);
      const first = await box.startProcess({ name: "web", argv });
      const key = { idempotencyKey: "k" };
      const start = () => box.startProcess({ name: "web", argv }, key);
      await expectRefusals([start(), start()], "name_taken");
      await box.endProcess(first.id);
      const two = await start();
      expect((await start()).id).toBe(two.id);
      expect((await box.process(two.id)).state).toBe("running");
    });

    itEvicting("[Y61] replaces once, also when the object is evicted in between", async () => {
      const { id, box } = await createSandbox(world);
      const key = { idempotencyKey: "k" };
      const call = { name: "web", argv, ifRunning };
      const first = await box.startProcess(call, key);
      await world.evict(id);
      expect(await box.startProcess(call, key)).toMatchObject({ id: first.id, state: "running" });
      expect((await box.processes({ name: "web" })).processes).toHaveLength(1);
    });

    it("[Y62] has a name within one incarnation only", async () => {
      const { box } = await createSandbox(world);
      await box.startProcess({ name: "web", argv });
      await box.pause({ force: true });
      expect((await box.processes({ name: "web" })).processes).toEqual([]);
      await box.start();
      const fresh = await box.startProcess({ name: "web", argv });
      const { processes } = await box.processes({ name: "web" });
      expect(processes.map(({ id }) => id)).toEqual([fresh.id]);
    });
  });
}
