/** The contract of processes: their course, waits, input and retention. See process-logs.ts for logs. */
import { describe, expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { rawLog } from "./log-events.ts";
import { createSandbox, eventually, expectRefusal, expectRefusals, type World } from "./world.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

export function processContract(world: World): void {
  describe("a process", () => {
    it("[Y32] outlives its call, is listed, and reports how it ended", async () => {
      const { box } = await createSandbox(world);
      const started = await box.startProcess({ command: "echo one; sleep 0.3; exit 3" });
      expect(started).toMatchObject({
        state: "running",
        command: "echo one; sleep 0.3; exit 3",
        cwd: "/workspace",
        stdin: { offset: 0, ended: false },
        incarnation: (await box.get()).incarnation,
      });
      expect(started.pid).toBeGreaterThan(1);
      expect((await box.processes()).processes.map(({ id }) => id)).toEqual([started.id]);
      const { met, process } = await box.waitForProcess(started.id);
      expect(met).toBe(true);
      expect(process).toMatchObject({
        id: started.id,
        pid: started.pid,
        state: "exited",
        exitCode: 3,
        signal: null,
        timedOut: false,
        leftovers: 0,
        log: { start: 0, end: 4, stdoutBytes: 4, stderrBytes: 0 },
      });
      expect(Date.parse(process.endedAt ?? "")).toBeGreaterThanOrEqual(
        Date.parse(process.startedAt),
      );
      expect(await box.process(started.id)).toEqual(process);
    });

    it("[Y32] is listed newest first, with filters", async () => {
      const { box } = await createSandbox(world);
      const first = await box.startProcess({ argv: ["true"] });
      await box.waitForProcess(first.id);
      const two = await box.startProcess({ argv: ["sleep", "60"] });
      expect(two.argv).toEqual(["sleep", "60"]);
      const ids = async (query: Parameters<typeof box.processes>[0]) =>
        (await box.processes(query)).processes.map(({ id }) => id);
      expect(await ids({})).toEqual([two.id, first.id]);
      expect(await ids({ state: "running" })).toEqual([two.id]);
      expect(await ids({ state: "exited" })).toEqual([first.id]);
      expect(await ids({ session: "nobody" })).toEqual([]);
      await box.endProcess(two.id);
      expect(await ids({ state: "running" })).toEqual([]);
    });

    it("[P27] shows a long command whole on its own, and its beginning in lists", async () => {
      const { box } = await createSandbox(world);
      const text = "x".repeat(5000);
      const long = await box.startProcess({ command: `echo ${text}` });
      const many = await box.startProcess({ argv: ["echo", text, text] });
      expect(long.command).toBe(`echo ${text}`);
      expect((await box.process(many.id)).argv).toEqual(["echo", text, text]);
      for (const { command, argv, abridged } of (await box.processes()).processes) {
        expect(abridged).toBe(true);
        const shown = command ?? argv?.join(" ") ?? "";
        expect(shown.startsWith("echo")).toBe(true);
        expect(shown.length).toBeLessThanOrEqual(limits.processListedCharsMax);
      }
      expect(await box.process(long.id)).not.toHaveProperty("abridged");
    });

    it("[Y32] has the folder and variables of its own call", async () => {
      const { box } = await createSandbox(world, { env: { COLOUR: "blue", SIZE: "big" } });
      const { id } = await box.startProcess({
        command: "pwd; printenv COLOUR; printenv SIZE",
        cwd: "/tmp",
        env: { COLOUR: "red" },
      });
      expect((await box.waitForProcess(id)).process).toMatchObject({ exitCode: 0, cwd: "/tmp" });
      expect(await rawLog(box, id)).toBe("/tmp\nred\nbig\n");
      expect((await box.exec({ command: "pwd; printenv COLOUR" })).stdout).toBe(
        "/workspace\nblue\n",
      );
    });

    it("[Y32] is refused if its folder is missing, and does not exist then", async () => {
      const { box } = await createSandbox(world);
      await expectRefusal(box.startProcess({ command: "true", cwd: "/no/such" }), "bad_cwd");
      expect((await box.processes()).processes).toEqual([]);
    });

    it("[Y32] of a missing program has exited with 127", async () => {
      const { box } = await createSandbox(world);
      const { id, pid } = await box.startProcess({ argv: ["no-such-program"] });
      expect(pid).toBeNull();
      const { process } = await box.waitForProcess(id);
      expect(process).toMatchObject({ state: "exited", exitCode: 127, pid: null });
      expect(await rawLog(box, id, { stream: "stderr" })).toBe("no-such-program: not found\n");
    });

    it("[Y32] ends at its timeout, and its output stays", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.startProcess({ command: "echo kept; sleep 60", timeoutMs: 3_000 });
      const { process } = await box.waitForProcess(id);
      expect(process).toMatchObject({ timedOut: true, exitCode: null, signal: "SIGTERM" });
      expect(await rawLog(box, id)).toBe("kept\n");
    });

    it.each(["SIGTERM", "SIGKILL", "SIGINT", "SIGUSR1"] as const)(
      "[Y33] receives a signal and reports it: %s",
      async (signal) => {
        const { box } = await createSandbox(world);
        const { id } = await box.startProcess({ argv: ["sleep", "60"] });
        expect((await box.signalProcess(id, "SIGCONT")).state).toBe("running");
        expect((await box.waitForProcess(id, { timeoutMs: 100 })).met).toBe(false);
        await box.signalProcess(id, signal);
        const { process } = await box.waitForProcess(id);
        expect(process).toMatchObject({ exitCode: null, signal, timedOut: false });
        expect((await box.signalProcess(id, signal)).state).toBe("exited");
      },
    );

    it("[Y33] is ended by a call, and forgotten by a second one", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.startProcess({ command: "sleep 60" });
      expect(await box.endProcess(id)).toMatchObject({ state: "exited", signal: "SIGTERM" });
      expect((await box.process(id)).state).toBe("exited");
      expect((await box.endProcess(id)).state).toBe("exited");
      await expectRefusal(box.process(id), "not_found");
      expect((await box.processes()).processes).toEqual([]);
    });

    it("[Y34] is waited for with a timeout of each waiter's own", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.startProcess({ command: "sleep 60" });
      const long = box.waitForProcess(id, { timeoutMs: 20_000 });
      for (const what of ["exit", "port:9", "log:ready"]) {
        const { met, process } = await box.waitForProcess(id, { for: what, timeoutMs: 50 });
        expect({ met, state: process.state }).toEqual({ met: false, state: "running" });
      }
      expect((await box.waitForProcess(id, { timeoutMs: 0 })).met).toBe(false);
      await box.endProcess(id);
      expect(await long).toMatchObject({ met: true, process: { state: "exited" } });
      expect((await box.waitForProcess(id, { timeoutMs: 0 })).met).toBe(true);
    });

    it("[Y34] is waited for until it writes a literal text to either stream", async () => {
      const { box } = await createSandbox(world);
      const command = "sleep 0.2; echo 'server [1] is ready'; sleep 0.1; echo oops >&2; sleep 60";
      const { id } = await box.startProcess({ command });
      const waits = ["log:[1] is re", "log:oops\n"].map((what) =>
        box.waitForProcess(id, { for: what, timeoutMs: 20_000 }),
      );
      for (const { met, process } of await Promise.all(waits)) {
        expect({ met, state: process.state }).toEqual({ met: true, state: "running" });
      }
      expect((await box.waitForProcess(id, { for: "log:server", timeoutMs: 0 })).met).toBe(true);
      const never = box.waitForProcess(id, { for: "log:never", timeoutMs: 20_000 });
      await box.endProcess(id);
      expect(await never).toMatchObject({ met: false, process: { state: "exited" } });
    });

    it("[Y35] takes its input by offset: what is written twice arrives once", async () => {
      const { box } = await createSandbox(world);
      const { id } = await box.startProcess({ argv: ["cat"] });
      const first = { offset: 6, ended: false };
      expect(await box.writeStdin(id, bytesOf("hello\n"), { offset: 0 })).toEqual(first);
      expect(await box.writeStdin(id, bytesOf("hello\n"), { offset: 0 })).toEqual(first);
      await expectRefusal(box.writeStdin(id, bytesOf("late"), { offset: 7 }), "stdin_gap", {
        offset: 6,
      });
      const [at] = ["lo\nwor"].map((text) => box.writeStdin(id, bytesOf(text), { offset: 3 }));
      expect(await at).toEqual({ offset: 9, ended: false });
      const eof = await box.writeStdin(id, bytesOf("ld\n"), { eof: true });
      expect(eof).toEqual({ offset: 12, ended: true });
      const { process } = await box.waitForProcess(id);
      expect(process).toMatchObject({ exitCode: 0, stdin: { offset: 12, ended: true } });
      expect(await rawLog(box, id)).toBe("hello\nworld\n");
      expect(await box.writeStdin(id, bytesOf("hello\n"), { offset: 0 })).toEqual(eof);
    });

    it("[Y36] is forgotten when fifty others have exited after it", async () => {
      const { box } = await createSandbox(world);
      const ids: string[] = [];
      for (let n = 0; n < limits.processesExitedMax + 3; n++) {
        const { id } = await box.startProcess({ argv: ["true"] });
        await box.waitForProcess(id);
        ids.push(id);
      }
      await eventually(async () => {
        const { processes } = await box.processes();
        expect(processes.map(({ id }) => id)).toEqual(ids.slice(3).reverse());
      });
      const forgotten = ids.slice(0, 3).map((id) => box.process(id));
      await expectRefusals(forgotten, "not_found");
    });
  });
}
