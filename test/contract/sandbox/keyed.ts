/**
 * Owns what callers are promised of calls with a key: at most once, the first answer for all who repeat it.
 */
import { describe, expect, it } from "vitest";
import { granted, made, refusal, saying, soon, type World } from "./world.ts";

export function keyedContract(world: World): void {
  describe("a call with a key", () => {
    it("[Y44] has the same answer each time, and another call under its key is refused", async () => {
      const { box } = await made(world);
      const key = { idempotencyKey: "exec-1" };
      const first = await box.exec({ command: "echo once; exit 4", env: { A: "1" } }, key);
      expect(first).toMatchObject({ stdout: "once\n", exitCode: 4 });
      const again = await box.exec({ env: { A: "1" }, command: "echo once; exit 4" }, key);
      expect(again).toEqual(first);
      const others = [
        () => box.exec({ command: "echo twice" }, key),
        () => box.startProcess({ command: "echo once; exit 4" }, key),
      ];
      for (const other of others) {
        expect((await refusal(other())).code).toBe("idempotency_mismatch");
      }
      const unkeyed = await box.exec({ command: "echo once; exit 4", env: { A: "1" } });
      expect(unkeyed.execId).not.toBe(first.execId);
      expect((await box.processes()).processes).toEqual([]);
    });

    saying(
      world,
      "ran",
      "evict",
    )("[Y44] runs once, also when the object is another in between", async () => {
      const { id, box } = await made(world);
      const key = { idempotencyKey: "k" };
      const calls = Array.from({ length: 5 }, () => box.exec({ command: "sleep 0.3" }, key));
      await soon(async () => expect((await world.inside(id)).running).toBe(1));
      const answers = await Promise.all(calls);
      await world.evict(id);
      answers.push(await box.exec({ command: "sleep 0.3" }, key));
      expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
      expect((await world.inside(id)).ran).toEqual(["sleep 0.3"]);
    });

    it("[Y44] is joined by those who repeat it while it runs", async () => {
      const { box } = await made(world);
      const call = { command: "sleep 0.5; echo done" };
      const calls = Array.from({ length: 5 }, () => box.exec(call, { idempotencyKey: "join" }));
      const [first, ...others] = await Promise.all(calls);
      expect(first).toMatchObject({ stdout: "done\n" });
      for (const other of others) expect(other).toEqual(first);
    });

    it("[Y44] starts one process, and tells of it as it is by then", async () => {
      const { box } = await made(world);
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
      const { box } = await made(world);
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
      const again = await box.startProcessInSession(
        id,
        { command: "true" },
        { idempotencyKey: "p" },
      );
      expect(again.id).toBe(process.id);
    });

    it("[Y45] needs no lease to be repeated, since it starts nothing; a new one does", async () => {
      const { box } = await made(world);
      const key = { idempotencyKey: "before" };
      const first = await box.exec({ command: "echo before" }, key);
      const { token } = granted(await box.acquireLease({ holder: "one" }));
      expect(await box.exec({ command: "echo before" }, key)).toEqual(first);
      const fresh = { idempotencyKey: "after" };
      expect((await refusal(box.exec({ command: "echo after" }, fresh))).code).toBe("lease_held");
      const led = { ...fresh, lease: token };
      expect((await box.exec({ command: "echo after" }, led)).stdout).toBe("after\n");
    });

    it("[Y45] that was refused before it began leaves its key free", async () => {
      const { box } = await made(world);
      const key = { idempotencyKey: "k" };
      const refused = await refusal(box.exec({ command: "true", cwd: "/no/such" }, key));
      expect(refused.code).toBe("bad_cwd");
      expect((await box.exec({ command: "echo fine" }, key)).stdout).toBe("fine\n");
    });

    it("[Y45] does not run again in the next life: its end is told, or that it was cut off", async () => {
      const { id, box } = await made(world);
      await box.exec({ command: "exit 6" }, { idempotencyKey: "ended" });
      const sleeps = { command: "echo begun; sleep 60" };
      const cut = refusal(box.exec(sleeps, { idempotencyKey: "cut" }));
      // The end of the first one may still be on its way: only the second holds a pause up from here on.
      await soon(async () => expect((await world.inside(id)).running).toBe(1));
      await soon(async () => expect((await refusal(box.pause())).code).toBe("lease_pending"));
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

    it("[Y45] has a key of the right form", async () => {
      const { box } = await made(world);
      expect(
        await refusal(box.exec({ command: "true" }, { idempotencyKey: "two words" })),
      ).toMatchObject({ code: "bad_request", facts: { field: "Idempotency-Key" } });
    });
  });
}
