/** The contract of calls that their caller cancels by the id that it chose. */
import { describe, expect, it } from "vitest";
import { acquireLease, createSandbox, eventually, refusal, type World } from "./world.ts";

export function cancelledCallContract(world: World): void {
  const cancelled = (admitted: boolean) => ({
    code: "operation_interrupted",
    facts: { admitted, reason: "cancelled" },
  });

  describe("a cancelled call", () => {
    it("[X58] has its command ended, whichever way it was called, and its lease is free", async () => {
      const { id, box } = await createSandbox(world);
      const { id: session } = await box.createSession({ id: "shell" });
      const calls = [
        (callId: string) => box.exec({ command: "sleep 600" }, { callId }),
        (callId: string) => box.exec({ command: "sleep 600" }, { callId, waitMs: 5_000 }),
        (callId: string) => box.exec({ command: "sleep 600" }, { callId, idempotencyKey: callId }),
        (callId: string) => box.execInSession(session, { command: "sleep 600" }, { callId }),
      ];
      for (const [n, start] of calls.entries()) {
        const callId = `call-number-${n}-of-many`;
        const call = refusal(start(callId));
        await eventually(async () => expect((await world.inside(id)).running).toBe(1));
        expect(await box.cancelCall(callId)).toEqual({ known: true });
        // The end of a session's command ends the session, and each says why in its own words.
        const { code, facts } = await call;
        expect({ n, code, admitted: facts.admitted }).toEqual({
          n,
          code: cancelled(true).code,
          admitted: true,
        });
        await eventually(async () => expect((await world.inside(id)).running).toBe(0));
        expect((await box.lease()).state).toBe("free");
        expect(await box.cancelCall(callId)).toEqual({ known: false });
      }
    });

    it("[X58] that still waits for the lease leaves the queue and begins nothing", async () => {
      const { id, box } = await createSandbox(world);
      const lease = acquireLease(await box.acquireLease({ holder: "first" }));
      const callId = "a-call-that-waits";
      const call = refusal(box.exec({ command: "echo ran" }, { callId, waitMs: 20_000 }));
      await eventually(async () => expect((await box.lease()).waiterCount).toBe(1));
      expect(await box.cancelCall(callId)).toEqual({ known: true });
      expect(await call).toMatchObject(cancelled(false));
      expect((await box.lease()).waiterCount).toBe(0);
      await box.releaseLease(lease.token);
      expect((await world.inside(id)).running).toBe(0);
    });

    it("[X58] is refused where its cancel came first", async () => {
      const { box } = await createSandbox(world);
      const callId = "a-call-that-is-late";
      expect(await box.cancelCall(callId)).toEqual({ known: false });
      const late = await refusal(box.exec({ command: "echo ran > ran" }, { callId }));
      expect(late).toMatchObject(cancelled(false));
      expect((await box.exec({ command: "ls" }, { callId: `${callId}-2` })).stdout).toBe("");
      const bad = await refusal(box.exec({ command: "true" }, { callId: "short" }));
      expect(bad).toMatchObject({ code: "bad_request" });
    });
  });
}
