/** The contract of sessions: what they remember, the order of commands, how they end. */
import { describe, expect, it } from "vitest";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { rawLog } from "./log-events.ts";
import { acquireLease, createSandbox, eventually, refusal, refusals, type World } from "./world.ts";

export function sessionContract(world: World): void {
  const busy = (box: SandboxApi, id: string, waiting = 0) =>
    eventually(async () => expect(await box.session(id)).toMatchObject({ state: "busy", waiting }));

  describe("a session", () => {
    it("[Y39] remembers folder, variables, aliases and functions; nothing else does", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession({ cwd: "/tmp", env: { COLOUR: "red" } });
      const says = async (command: string) => (await box.execInSession(id, { command })).stdout;
      expect(await says("pwd; echo $COLOUR")).toBe("/tmp\nred\n");
      await says("cd /usr; PLAIN=1; export SHARED=2");
      await says("alias hi='echo hello'");
      await says('twice() { echo "$PLAIN$PLAIN"; }');
      expect(await says("pwd; echo $PLAIN; printenv SHARED")).toBe("/usr\n1\n2\n");
      expect(await says("hi you")).toBe("hello you\n");
      expect(await says("twice")).toBe("11\n");
      expect((await box.execInSession(id, { command: "printenv PLAIN" })).exitCode).toBe(1);
      expect((await box.session(id)).cwd).toBe("/usr");

      const other = await box.createSession();
      const printState = "pwd; echo $SHARED$PLAIN";
      expect((await box.execInSession(other.id, { command: printState })).stdout).toBe(
        "/workspace\n\n",
      );
      expect((await box.exec({ command: printState })).stdout).toBe("/workspace\n\n");
      const { sessions } = await box.sessions();
      expect(sessions.map((session) => session.id).sort()).toEqual([id, other.id].sort());
    });

    it("[Y39] returns the result of each command: code, both streams, input", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession();
      expect(
        await box.execInSession(id, { command: "echo out; echo err >&2; false" }),
      ).toMatchObject({
        exitCode: 1,
        stdout: "out\n",
        stderr: "err\n",
        signal: null,
        timedOut: false,
      });
      expect(await box.execInSession(id, { command: "cat", stdin: "in" })).toMatchObject({
        exitCode: 0,
        stdout: "in",
      });
      expect((await box.execInSession(id, { command: "cat" })).stdout).toBe("");
      const short = await box.execInSession(id, { command: "seq 100", maxOutputBytes: 10 });
      expect(short).toMatchObject({ truncated: true, stdout: "1\n2\n3\n4\n5\n" });
      expect((await box.execInSession(id, { command: "no-such-program" })).exitCode).toBe(127);
    });

    it("[Y40] runs one command at a time, in order of arrival", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession();
      const calls = [box.execInSession(id, { command: "ORDER=a; sleep 3" })];
      await busy(box, id);
      for (const [n, letter] of ["b", "c", "d"].entries()) {
        calls.push(box.execInSession(id, { command: `ORDER=\${ORDER}${letter}; echo $ORDER` }));
        await busy(box, id, n + 1);
      }
      const said = (await Promise.all(calls)).map(({ stdout }) => stdout);
      expect(said).toEqual(["", "ab\n", "abc\n", "abcd\n"]);
      expect(await box.session(id)).toMatchObject({ state: "ready", waiting: 0 });
    });

    it("[Y41] is created once for an id, however many request it at once", async () => {
      const { box } = await createSandbox(world);
      const call = { id: "build", cwd: "/tmp" };
      const made20 = await Promise.all(Array.from({ length: 20 }, () => box.createSession(call)));
      expect(new Set(made20.map(({ pid }) => pid)).size).toBe(1);
      expect((await box.sessions()).sessions).toHaveLength(1);
      await box.execInSession("build", { command: "cd /usr" });
      expect(await box.createSession(call)).toMatchObject({ id: "build", cwd: "/usr" });
      expect((await refusal(box.createSession({ id: "bad", cwd: "/no/such" }))).code).toBe(
        "bad_cwd",
      );
      expect((await refusal(box.session("bad"))).code).toBe("not_found");
    });

    it("[Y42] ends with its shell, and says how; the next one under its id begins fresh", async () => {
      const { box } = await createSandbox(world);
      const { pid } = await box.createSession({ id: "one" });
      await box.execInSession("one", { command: "X=1" });
      expect(
        await refusal(box.execInSession("one", { command: "echo bye; exit 3" })),
      ).toMatchObject({
        code: "session_terminated",
        facts: { exitCode: 3, signal: null, reason: "exited", stdout: "bye\n" },
      });
      const late = [box.execInSession("one", { command: "true" }), box.session("one")];
      for (const refused of await refusals(late)) {
        expect(refused).toMatchObject({ code: "session_terminated", facts: { exitCode: 3 } });
      }
      expect((await box.sessions()).sessions).toEqual([]);
      const next = await box.createSession({ id: "one" });
      expect(next.pid).not.toBe(pid);
      expect((await box.execInSession("one", { command: "echo x$X" })).stdout).toBe("x\n");
    });

    it("[Y42] ends when a command times out, with everything that waits", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession({ commandTimeoutMs: 60_000 });
      const command = "echo begun; sleep 60";
      const first = refusal(box.execInSession(id, { command, timeoutMs: 3_000 }));
      await busy(box, id);
      const waits = refusal(box.execInSession(id, { command: "true" }));
      await busy(box, id, 1);
      const timedOut = { reason: "timed_out", timedOut: true };
      expect(await first).toMatchObject({
        code: "session_terminated",
        facts: { ...timedOut, stdout: "begun\n" },
      });
      expect(await waits).toMatchObject({ code: "session_terminated", facts: timedOut });
    });

    it("[Y42] ends when its shell is killed from inside", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession();
      expect(await refusal(box.execInSession(id, { command: "kill -KILL $$" }))).toMatchObject({
        code: "session_terminated",
        facts: { signal: "SIGKILL", exitCode: null, reason: "exited" },
      });
    });

    it("[Y42] is ended by a call, also during a command", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession({ id: "one" });
      const cut = refusal(box.execInSession(id, { command: "sleep 60" }));
      await busy(box, id);
      expect(await box.endSession(id)).toEqual({ id, ended: true });
      expect(await cut).toMatchObject({ code: "session_terminated", facts: { reason: "ended" } });
      expect((await box.sessions()).sessions).toEqual([]);
    });

    it("[Y42] ends with the lease under which its command ran", async () => {
      const { box } = await createSandbox(world);
      await box.createSession({ id: "one" });
      const { token } = acquireLease(await box.acquireLease({ holder: "one" }));
      const cut = refusal(box.execInSession("one", { command: "sleep 60" }, { lease: token }));
      await busy(box, "one");
      await box.breakLease("it is stuck");
      expect(await cut).toMatchObject({
        code: "operation_interrupted",
        facts: { admitted: true, reason: "lease_lost" },
      });
      await eventually(async () => expect((await box.lease()).state).toBe("free"));
      expect(await refusal(box.execInSession("one", { command: "true" }))).toMatchObject({
        code: "session_terminated",
        facts: { reason: "lease_lost" },
      });
    });

    it("[Y43] gives a process a copy of its state, and takes nothing back", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.createSession();
      await box.execInSession(id, { command: "cd /tmp; PLAIN=1; export SHARED=2" });
      const process = await box.startProcessInSession(id, {
        command: "pwd; echo $PLAIN$SHARED; PLAIN=9; cd /usr; sleep 60",
      });
      expect(process).toMatchObject({ sessionId: id, cwd: "/tmp", state: "running" });
      await box.waitForProcess(process.id, { for: "log:12\n" });
      expect(await rawLog(box, process.id)).toBe("/tmp\n12\n");
      expect((await box.execInSession(id, { command: "pwd; echo $PLAIN" })).stdout).toBe(
        "/tmp\n1\n",
      );
      const plain = await box.startProcess({ argv: ["sleep", "60"] });
      expect(plain).not.toHaveProperty("sessionId");
      const { processes } = await box.processes({ session: id });
      expect(processes.map((process) => process.id)).toEqual([process.id]);
      await box.endSession(id);
      expect((await box.process(process.id)).state).toBe("running");
      expect((await box.endProcess(process.id)).state).toBe("exited");
    });
  });
}
