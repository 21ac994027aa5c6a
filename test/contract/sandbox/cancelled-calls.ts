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
      // In a real sandbox the session is a process too, whose commands are none of the agent's.
      const idle = (await world.inside(id)).running;
      for (const [n, start] of calls.entries()) {
        const callId = `call-number-${n}-of-many`;
        const call = refusal(start(callId));
        await eventually(async () => {
          if (n < calls.length - 1) expect((await world.inside(id)).running).toBe(idle + 1);
          else expect((await box.session(session)).state).toBe("busy");
        });
        expect(await box.cancelCall(callId)).toEqual({ known: true });
        const { code, facts } = await call;
        if (n < calls.length - 1) {
          const expected = { n, code: cancelled(true).code, admitted: true };
          expect({ n, code, admitted: facts.admitted }).toEqual(expected);
        } else {
          // The end of its command ends a session, which may be what is reported.
          expect([cancelled(true).code, "session_terminated"]).toContain(code);
        }
        await eventually(async () =>
          expect((await world.inside(id)).running).toBeLessThanOrEqual(idle),
        );
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
      const { running } = await world.inside(id);
      await box.releaseLease(lease.token);
      expect((await world.inside(id)).running).toBe(running);
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
