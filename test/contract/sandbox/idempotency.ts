/** The contract of idempotency keys: a call runs at most once, and every repetition gets the first result. */
import { describe, expect, it } from "vitest";
import { acquireLease, createSandbox, eventually, itWith, refusal, type World } from "./world.ts";

export function idempotencyContract(world: World): void {
  describe("a call with a key", () => {
    it("[Y44] returns the same result each time, and refuses another call under its key", async () => {
      const { box } = await createSandbox(world);
      const key = { idempotencyKey: "exec-1" };
      const first = await box.exec({ command: "echo once; exit 4", env: { A: "1" } }, key);
      expect(first).toMatchObject({ stdout: "once\n", exitCode: 4 });
      const repeated = await box.exec({ env: { A: "1" }, command: "echo once; exit 4" }, key);
      expect(repeated).toEqual(first);
      const others = [
        () => box.exec({ command: "echo twice" }, key),
        () => box.startProcess({ command: "echo once; exit 4" }, key),
      ];
      for (const other of others) {
        expect((await refusal(other())).code).toBe("idempotency_mismatch");
      }
      const withoutKey = await box.exec({ command: "echo once; exit 4", env: { A: "1" } });
      expect(withoutKey.execId).not.toBe(first.execId);
      expect((await box.processes()).processes).toEqual([]);
    });

    itWith(
      world,
      "ran",
      "evict",
    )("[Y44] runs once, also when the object is evicted in between", async () => {
      const { id, box } = await createSandbox(world);
      const key = { idempotencyKey: "k" };
      const calls = Array.from({ length: 5 }, () => box.exec({ command: "sleep 0.3" }, key));
      await eventually(async () => expect((await world.inside(id)).running).toBe(1));
      const answers = await Promise.all(calls);
      await world.evict(id);
      answers.push(await box.exec({ command: "sleep 0.3" }, key));
      expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
      expect((await world.inside(id)).ran).toEqual(["sleep 0.3"]);
    });

    it("[Y44] is joined by repetitions while it runs", async () => {
      const { box } = await createSandbox(world);
      const call = { command: "sleep 0.5; echo done" };
      const calls = Array.from({ length: 5 }, () => box.exec(call, { idempotencyKey: "join" }));
      const [first, ...others] = await Promise.all(calls);
      expect(first).toMatchObject({ stdout: "done\n" });
      for (const other of others) expect(other).toEqual(first);
    });

    it("[Y44] starts one process, and returns its present state", async () => {
      const { box } = await createSandbox(world);
      const key = { idempotencyKey: "build" };
      const calls = Array.from({ length: 5 }, () => box.startProcess({ command: "exit 5" }, key));
      const ids = new Set((await Promise.all(calls)).map(({ id }) => id));
      expect(ids.size).toBe(1);
      const [id = ""] = ids;
      await box.waitForProcess(id);
      expect(await box.startProcess({ command: "exit 5" }, key)).toMatchObject({
        id,
        state: "exited",
        exitCode: 5,
      });
      expect((await box.processes()).processes).toHaveLength(1);
    });

    it("[Y44] changes a session once", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession();
      const call = { command: "N=x$N; echo $N" };
      const key = { idempotencyKey: "session" };
      const first = await box.execInSession(id, call, key);
      expect(await box.execInSession(id, call, key)).toEqual(first);
      expect((await box.execInSession(id, { command: "echo $N" })).stdout).toBe("x\n");
      const process = await box.startProcessInSession(
        id,
        { command: "true" },
        { idempotencyKey: "p" },
      );
      const repeated = await box.startProcessInSession(
        id,
        { command: "true" },
        { idempotencyKey: "p" },
      );
      expect(repeated.id).toBe(process.id);
    });

    it("[Y45] needs no lease to be repeated, because it starts nothing; a new one does", async () => {
      const { box } = await createSandbox(world);
      const key = { idempotencyKey: "before" };
      const first = await box.exec({ command: "echo before" }, key);
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      expect(await box.exec({ command: "echo before" }, key)).toEqual(first);
      const fresh = { idempotencyKey: "after" };
      expect((await refusal(box.exec({ command: "echo after" }, fresh))).code).toBe("lease_held");
      const led = { ...fresh, lease: token };
      expect((await box.exec({ command: "echo after" }, led)).stdout).toBe("after\n");
    });

    it("[Y45] that was refused before it began leaves its key free", async () => {
      const { box } = await createSandbox(world);
      const key = { idempotencyKey: "k" };
      const refused = await refusal(box.exec({ command: "true", cwd: "/no/such" }, key));
      expect(refused.code).toBe("bad_cwd");
      expect((await box.exec({ command: "echo fine" }, key)).stdout).toBe("fine\n");
    });

    it("[Y45] does not run again in the next incarnation: its exit or its interruption is reported", async () => {
      const { id, box } = await createSandbox(world);
      await box.exec({ command: "exit 6" }, { idempotencyKey: "ended" });
      const sleeps = { command: "echo begun; sleep 60" };
      const cut = refusal(box.exec(sleeps, { idempotencyKey: "cut" }));
      // The end of the first one may still be on its way: from here on only the second delays a pause.
      await eventually(async () => expect((await world.inside(id)).running).toBe(1));
      await eventually(async () => expect((await refusal(box.pause())).code).toBe("lease_pending"));
      await box.pause({ force: true });
      expect((await cut).code).toBe("operation_interrupted");
      await box.start();
      expect(
        await refusal(box.exec({ command: "exit 6" }, { idempotencyKey: "ended" })),
      ).toMatchObject({ code: "result_gone", facts: { exitCode: 6 } });
      expect(await refusal(box.exec(sleeps, { idempotencyKey: "cut" }))).toMatchObject({
        code: "operation_interrupted",
        facts: { admitted: true },
      });
    });

    it("[Y45] requires a well-formed key", async () => {
      const { box } = await createSandbox(world);
      expect(
        await refusal(box.exec({ command: "true" }, { idempotencyKey: "two words" })),
      ).toMatchObject({ code: "bad_request", facts: { field: "Idempotency-Key" } });
    });
  });
}
