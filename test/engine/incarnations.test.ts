/** Starts, ends and crashes of sandboxes and of the engine itself, as root and as another user. */
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import { until } from "../until.ts";
import {
  agentsOf,
  EnginesOfTest,
  expectFilesKept,
  firstOf,
  identities,
  isRunning,
  newId,
  newStart,
  type RunningSandbox,
  run,
  startEngine,
  type TestEngine,
} from "./test-engine.ts";

const take590MiB = "head -c 600m /dev/zero | tail -c 590m | wc -c";
const taken590MiB = `${590 * 1024 * 1024}\n`;

/** Starts processes and prints how many there are. */
const startProcesses = (count: number) =>
  `i=0; while [ $i -lt ${count} ]; do sleep 600 & i=$((i+1)); done 2>/dev/null; ls -d /proc/[0-9]* | wc -l`;

describe.each(identities())("incarnations under an engine that is %s", (as) => {
  const engines = new EnginesOfTest(as);
  const start = (env: Record<string, string> = {}) => engines.start(env);
  /** Begins a command that the end of its sandbox cuts off. Its `end` is in an object, so that it is not awaited here. */
  const begin = async (
    engine: TestEngine,
    sandbox: RunningSandbox,
    { command, processes }: { command: string; processes: number },
  ) => {
    const before = engine.processes().length;
    const end = sandbox.sh(command).catch(() => "cut");
    await until("the command", () => engine.processes().length >= before + processes);
    engines.remember(engine);
    return { end };
  };
  /** Instead of the real agent the engine starts a shell script. */
  const startWithAgent = (script: string) => {
    const folder = mkdtempSync(join(tmpdir(), "berth-agent-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const agent = join(folder, "agent");
    writeFileSync(agent, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    chmodSync(folder, 0o755);
    return start({ BERTH_ENGINE_AGENT: agent });
  };

  it("[R11] the end of a killed agent is reported at once, with its signal, and its files are kept", async () => {
    const engine = await start();
    const sandbox = await run(engine);
    await sandbox.sh("echo kept > /workspace/file");
    const exit = sandbox.container.monitor(sandbox.startId, limits.monitorWaitMaxMs);
    const agent = firstOf(agentsOf(engine));
    engines.remember(engine);
    process.kill(agent, "SIGKILL");
    expect(await exit).toEqual({ exitCode: null, signal: "SIGKILL", reason: "exited" });
    await expectFilesKept(engine, sandbox.id);
  });

  it("[R37] if its outer process is killed, an incarnation ends only when nothing of it is left, and the next one starts clean", async () => {
    const engine = await start();
    const id = newId();
    for (let round = 0; round < 3; round += 1) {
      const sandbox = await run(engine, { id });
      // The kernel needs longer to end many processes, and the groups of commands have the same names in each
      // incarnation.
      const many = "for n in $(seq 150); do sleep 99 & done; sleep 99";
      const running = Promise.all([sandbox.sh(many), sandbox.sh("sleep 99")]).catch(() => "cut");
      await until("the commands", () => engine.processes().length > 150);
      engines.remember(engine);
      const inside = engine.processes();
      // A process in the group of a command that remains after the jail, like one that the kernel has not ended yet.
      const slow = spawn("sleep", ["99"], { stdio: "ignore" });
      const slowEnded = new Promise((resolve) => slow.once("exit", (_, signal) => resolve(signal)));
      const groups = groupsOfCommands(engine.data, id);
      expect(groups.length > 0).toBe(as === "root" && sandbox.started.isolation.tree === "cgroup");
      for (const group of groups.slice(0, 1)) writeFileSync(`${group}/cgroup.procs`, `${slow.pid}`);
      if (groups.length === 0) slow.kill("SIGKILL");
      process.kill(firstOf(inside), "SIGKILL");
      const exit = sandbox.container.monitor(sandbox.startId, limits.monitorWaitMaxMs);
      const restarted = await run(engine, { id });
      expect(inside.filter(isRunning)).toEqual([]);
      expect(await slowEnded).toBe("SIGKILL");
      expect(await exit).toMatchObject({ signal: "SIGKILL" });
      expect(await running).toBe("cut");
      for (const word of ["a", "b", "c"]) {
        const printed = { stdout: `${word}\n`, stderr: "", exitCode: 0 };
        expect(await restarted.sh(`echo ${word}`)).toMatchObject(printed);
      }
      await restarted.container.destroy("keep");
    }
  });

  it("[V9] a signal reaches a command whose program only root can see: undumpable, and its first thread has ended", async () => {
    const engine = await start();
    const sandbox = await run(engine);
    const script = `
import ctypes, threading, time
def on():
    open("/workspace/on", "w")
    time.sleep(99)
threading.Thread(target=on).start()
libc = ctypes.CDLL(None)
libc.prctl(4, 0, 0, 0, 0)
libc.pthread_exit(None)`;
    const running = sandbox.sh(`exec python3 -c '${script}'`);
    await until("only its second thread runs", async () => {
      const result = await sandbox.sh("test -e /workspace/on && ps -eo stat | grep -q '^Z.*l'");
      return result.exitCode === 0;
    });
    engines.remember(engine);
    await sandbox.container.signal(15);
    expect(await running).toMatchObject({ signal: "SIGTERM" });
    expect((await sandbox.sh("echo on")).stdout).toBe("on\n");
  });

  it("[R12] destroy ends all processes of a sandbox, and with `remove` deletes its files", async () => {
    const engine = await start();
    const sandbox = await run(engine);
    const command = "setsid sh -c 'trap \"\" TERM HUP; sleep 99' & sleep 99";
    const running = await begin(engine, sandbox, { command, processes: 3 });
    const inside = agentsOf(engine);
    expect(inside.length).toBe(1);
    await sandbox.container.destroy("remove");
    expect(engine.processes()).toEqual([]);
    expect(existsSync(`${engine.data}/trees/${sandbox.id}`)).toBe(false);
    expect(await running.end).toBe("cut");
    await sandbox.container.destroy("remove");
  });

  it("[R13] kill -9 of the engine leaves no agent and no command", async () => {
    const engine = await start();
    const sandbox = await run(engine);
    const running = await begin(engine, sandbox, {
      command: "setsid sleep 99 & sleep 99",
      processes: 3,
    });
    const processes = engine.processes();
    await engine.kill();
    await until("the end of all", () => !processes.some(isRunning));
    expect(await running.end).toBe("cut");
    // Groups of a killed engine are empty folders; the next engine removes them.
    await start();
  });

  it("[R14] the next engine ends what an earlier one left running, and keeps the files", async () => {
    const first = await start();
    const sandbox = await run(first);
    await sandbox.sh(
      "echo kept > /workspace/file; mkdir -p /workspace/closed; chmod 000 /workspace/closed",
    );
    const agent = firstOf(agentsOf(first));
    const processes = first.processes();
    engines.remember(first);
    // A stopped agent cannot notice the end of its engine.
    process.kill(agent, "SIGSTOP");
    await first.kill();
    expect(isRunning(agent)).toBe(true);
    const second = await start();
    expect(processes.filter(isRunning)).toEqual([]);
    const exit = await second
      .container(sandbox.id)
      .monitor(sandbox.startId, limits.monitorWaitMaxMs);
    expect(exit).toMatchObject({ reason: "engine_restarted" });
    await expectFilesKept(second, sandbox.id);
  });

  it.each(["stdin", "SIGTERM", "SIGINT"])("[R15] on %s the engine ends everything", async (how) => {
    const engine = await start();
    await run(engine);
    const sandbox = await run(engine);
    const running = await begin(engine, sandbox, { command: "sleep 99", processes: 2 });
    const processes = engine.processes();
    const exited = new Promise((resolve) => engine.child.once("exit", resolve));
    if (how === "stdin") engine.child.stdin?.end();
    else engine.child.kill(how as NodeJS.Signals);
    expect(await exited).toBe(0);
    expect(processes.filter(isRunning)).toEqual([]);
    expect(await running.end).toBe("cut");
  });

  it("[R16] fifty sandboxes that start at once all run commands, and all end", async () => {
    const engine = await start();
    const all = await Promise.all(Array.from({ length: 50 }, () => run(engine)));
    const results = await Promise.all(all.map(({ sh }, index) => sh(`echo ${index}`)));
    expect(results.map(({ stdout }) => stdout)).toEqual(all.map((_, index) => `${index}\n`));
    engines.remember(engine);
    await Promise.all(all.map(({ container }) => container.destroy("remove")));
    expect(engine.processes()).toEqual([]);
  });

  it("[R17] the engine refuses containers above its limit and names the limit", async () => {
    const engine = await start({ BERTH_ENGINE_CONTAINERS_MAX: "2" });
    const sandbox = await run(engine);
    await run(engine);
    await expect(run(engine)).rejects.toMatchObject({
      code: "too_many",
      hint: expect.stringContaining("BERTH_ENGINE_CONTAINERS_MAX"),
    });
    await sandbox.container.destroy("keep");
    await run(engine);
  });

  it("[R18] an agent that does not start is a failed start and leaves nothing", async () => {
    const engine = await startWithAgent("echo last words >&2; exit 7");
    const id = newId();
    const call = newStart();
    await expect(engine.container(id).start(call)).rejects.toMatchObject({ code: "start_failed" });
    expect(engine.log()).toContain("last words");
    expect(engine.processes()).toEqual([]);
  });

  it("[R19] a destroy ends a hanging start at once", async () => {
    const engine = await startWithAgent("exec sleep 1000");
    const id = newId();
    const starting = expect(engine.container(id).start(newStart())).rejects.toMatchObject({
      code: "start_failed",
    });
    await until("the hanging agent", () => engine.processes().length === 2);
    engines.remember(engine);
    await engine.container(id).destroy("remove");
    await starting;
    expect(engine.processes()).toEqual([]);
  });

  it("[R20] two engines never share a data folder", async () => {
    const { data } = await start();
    await expect(startEngine(as, { data })).rejects.toThrow("Another engine uses");
  });

  it("[R39] a jail gets the limits of its own start, and a limit that this machine cannot enforce is refused", async () => {
    const engine = await start();
    const plain = await run(engine);
    const { isolation } = plain.started;
    const forks = startProcesses(90);
    expect(isolation.processLimit).toBe(true);
    const narrow = await run(engine, { size: { name: "narrow", processes: 48 } });
    expect(Number((await plain.sh(forks, 100_000)).stdout)).toBeGreaterThan(90);
    expect(Number((await narrow.sh(forks, 100_000)).stdout.trim() || 0)).toBeLessThan(54);
    // Far more than the agent uses, so that the kernel kills the command.
    const small = { name: "small", memoryBytes: 256 * 1024 * 1024 };
    if (isolation.memoryLimit) {
      const sandbox = await run(engine, { size: small });
      expect((await sandbox.sh(take590MiB)).stdout).not.toBe(taken590MiB);
      expect((await plain.sh(take590MiB)).stdout).toBe(taken590MiB);
    } else {
      const refused = { code: "unsupported", facts: { field: "size" } };
      await expect(run(engine, { size: small })).rejects.toMatchObject(refused);
    }
    const machine = { name: "machine", instance: "basic" } as const;
    await expect(run(engine, { size: machine })).rejects.toMatchObject({ code: "unsupported" });
  });

  it.skipIf(as !== "root")(
    "[R34] an agent that the kernel kills for lack of memory is reported as out of memory",
    async () => {
      const engine = await start({ BERTH_ENGINE_MEMORY_MAX: String(96 * 1024 * 1024) });
      const sandbox = await run(engine);
      if (!sandbox.started.isolation.memoryLimit)
        return console.warn("SKIPPED: no memory controller here");
      const exit = sandbox.container.monitor(sandbox.startId, limits.monitorWaitMaxMs);
      // Each uses less memory than the agent at the same OOM score, so that the kernel kills the agent.
      const many = `
import os, time
open("/proc/self/oom_score_adj", "w").write(open("/proc/1/oom_score_adj").read())
for n in range(40):
    if os.fork() == 0:
        kept = bytearray(b"x") * (4 << 20)
        time.sleep(5); os._exit(0)
time.sleep(5)
`;
      const fill = () => sandbox.sh(`python3 -c '${many}'`).catch(() => "cut");
      const agentExit = { isSeen: false };
      void exit.then(() => (agentExit.isSeen = true));
      await until("the end of the agent", async () => {
        await fill();
        return agentExit.isSeen;
      });
      expect(await exit).toEqual({ exitCode: null, signal: "SIGKILL", reason: "out_of_memory" });
      const restarted = await run(engine, { id: sandbox.id });
      expect((await restarted.sh("ls /tmp; echo alive")).stdout).toBe("alive\n");
    },
  );

  it("[R22] the engine reports truthfully which isolation it offers and what is missing", async () => {
    const engine = await start();
    const response = await fetch(`${engine.baseUrl}/v1/health`, {
      headers: { authorization: `Bearer ${engine.secret}` },
    });
    const health = (await response.json()) as {
      isolation: Record<string, unknown>;
      missing: string[];
    };
    expect(health.isolation).toMatchObject({
      user: as === "root" ? "ranged" : "mapped",
      diskLimit: false,
      processes: "namespace",
    });
    expect(health.missing.join(" ")).toMatch(/Disk space/);
    expect(health.missing.some((it) => it.includes("Memory"))).toBe(!health.isolation.memoryLimit);
    const { started } = await run(engine);
    expect({ ...started.isolation }).toMatchObject(health.isolation);
    expect(readFileSync(`${engine.data}/instance`, "utf8")).toMatch(/^[a-z0-9]{8}\n$/);
  });
});

/** Finds the cgroups of a sandbox's commands (`c` and a number), if the machine has such groups. */
function groupsOfCommands(data: string, id: string): string[] {
  const instance = readFileSync(`${data}/instance`, "utf8").trim();
  const pattern = `*/berth-${instance}/${id}/c[0-9]*`;
  const found = spawnSync("find", ["/sys/fs/cgroup", "-type", "d", "-path", pattern]);
  return String(found.stdout).split("\n").filter(Boolean);
}
