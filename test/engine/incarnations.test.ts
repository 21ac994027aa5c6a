/** Starts, ends, crashes of sandboxes and of the engine itself, as root and as somebody else. */
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../src/protocol/limits.ts";
import {
  agentsOf,
  identities,
  isRunning,
  newData,
  newId,
  newStart,
  removeData,
  run,
  startEngine,
  type TestEngine,
  tracesOf,
  until,
} from "./test-engine.ts";

describe.each(identities())("lives under an engine that is %s", (as) => {
  let data: string;
  let engines: TestEngine[];
  const seen = new Set<number>();

  const start = async (env: Record<string, string> = {}) => {
    const engine = await startEngine(as, { data, env });
    engines.push(engine);
    return engine;
  };
  const remember = (engine: TestEngine) => {
    for (const pid of engine.processes()) seen.add(pid);
  };

  beforeEach(() => {
    data = newData(as);
    engines = [];
    seen.clear();
  });

  afterEach(async () => {
    for (const engine of engines) {
      if (engine.child.exitCode !== null || engine.child.signalCode !== null) continue;
      remember(engine);
      await engine.stop();
    }
    expect(tracesOf(data, [...seen])).toEqual([]);
    removeData(data);
  });

  it("[R11] an agent that is killed is told of at once, with its signal, and its files stay", async () => {
    const engine = await start();
    const one = await run(engine);
    await one.sh("echo kept > /workspace/file");
    const told = one.container.monitor(one.startId, limits.monitorWaitMaxMs);
    const [agent = 0] = agentsOf(engine);
    remember(engine);
    process.kill(agent, "SIGKILL");
    expect(await told).toEqual({ exitCode: null, signal: "SIGKILL", reason: "exited" });
    const again = await run(engine, { id: one.id });
    expect(again.started.files).toBe("kept");
    expect((await again.sh("cat /workspace/file")).stdout).toBe("kept\n");
  });

  it("[R37] where its outer process is killed, a life is over only when nothing of it is left, and the next begins clean", async () => {
    const engine = await start();
    const id = newId();
    for (let round = 0; round < 3; round += 1) {
      const one = await run(engine, { id });
      // Many take the kernel longer to be rid of, and the groups of commands are named alike in each life.
      const many = "for n in $(seq 150); do sleep 99 & done; sleep 99";
      const running = Promise.all([one.sh(many), one.sh("sleep 99")]).catch(() => "cut");
      await until("the commands", () => engine.processes().length > 150);
      remember(engine);
      const inside = engine.processes();
      // As one that the kernel has not let go of yet: it stands in the group of a command and outlives the room.
      const slow = spawn("sleep", ["99"], { stdio: "ignore" });
      const slowEnded = new Promise((resolve) => slow.once("exit", (_, signal) => resolve(signal)));
      const groups = groupsOfCommands(data, id);
      expect(groups.length > 0).toBe(as === "root" && one.started.isolation.tree === "cgroup");
      for (const group of groups.slice(0, 1)) writeFileSync(`${group}/cgroup.procs`, `${slow.pid}`);
      if (groups.length === 0) slow.kill("SIGKILL");
      process.kill(inside[0] ?? 0, "SIGKILL");
      const told = one.container.monitor(one.startId, limits.monitorWaitMaxMs);
      const again = await run(engine, { id });
      expect(inside.filter(isRunning)).toEqual([]);
      expect(await slowEnded).toBe("SIGKILL");
      expect(await told).toMatchObject({ signal: "SIGKILL" });
      expect(await running).toBe("cut");
      for (const word of ["a", "b", "c"]) {
        const { stdout, stderr, exitCode } = await again.sh(`echo ${word}`);
        expect({ stdout, stderr, exitCode }).toEqual({
          stdout: `${word}\n`,
          stderr: "",
          exitCode: 0,
        });
      }
      await again.container.destroy("keep");
    }
  });

  it("[V9] a signal reaches a command whose program is shown to root alone: closed, and its first thread has ended", async () => {
    const engine = await start();
    const one = await run(engine);
    const outlived = `
import ctypes, threading, time
def on():
    open("/workspace/on", "w")
    time.sleep(99)
threading.Thread(target=on).start()
libc = ctypes.CDLL(None)
libc.prctl(4, 0, 0, 0, 0)
libc.pthread_exit(None)`;
    const running = one.sh(`exec python3 -c '${outlived}'`);
    await until("only its second thread runs", async () => {
      const look = await one.sh("test -e /workspace/on && ps -eo stat | grep -q '^Z.*l'");
      return look.exitCode === 0;
    });
    remember(engine);
    await one.container.signal(15);
    expect(await running).toMatchObject({ signal: "SIGTERM" });
    expect((await one.sh("echo on")).stdout).toBe("on\n");
  });

  it("[R12] destroy ends all processes of a sandbox, and with `remove` its files", async () => {
    const engine = await start();
    const one = await run(engine);
    const running = one
      .sh("setsid sh -c 'trap \"\" TERM HUP; sleep 99' & sleep 99")
      .catch(() => "cut");
    await until("the command", () => engine.processes().length > 4);
    remember(engine);
    const inside = agentsOf(engine);
    expect(inside.length).toBe(1);
    await one.container.destroy("remove");
    expect(engine.processes()).toEqual([]);
    expect(existsSync(`${data}/trees/${one.id}`)).toBe(false);
    expect(await running).toBe("cut");
    await one.container.destroy("remove");
  });

  it("[R13] kill -9 of the engine leaves no agent and no command", async () => {
    const engine = await start();
    const one = await run(engine);
    const running = one.sh("setsid sleep 99 & sleep 99").catch(() => "cut");
    await until("the command", () => engine.processes().length > 4);
    const processes = engine.processes();
    remember(engine);
    await engine.kill();
    await until("the end of all", () => !processes.some(isRunning));
    expect(await running).toBe("cut");
    // Groups of a killed engine are empty folders; the next one takes them.
    await start();
  });

  it("[R14] the next engine ends what one left running, and keeps the files", async () => {
    const first = await start();
    const one = await run(first);
    await one.sh(
      "echo kept > /workspace/file; mkdir -p /workspace/closed; chmod 000 /workspace/closed",
    );
    const [agent = 0] = agentsOf(first);
    const processes = first.processes();
    remember(first);
    // Held still it cannot see that its engine is gone.
    process.kill(agent, "SIGSTOP");
    await first.kill();
    expect(isRunning(agent)).toBe(true);
    const second = await start();
    expect(processes.filter(isRunning)).toEqual([]);
    expect(
      await second.container(one.id).monitor(one.startId, limits.monitorWaitMaxMs),
    ).toMatchObject({
      reason: "engine_restarted",
    });
    const again = await run(second, { id: one.id });
    expect(again.started.files).toBe("kept");
    expect((await again.sh("cat /workspace/file")).stdout).toBe("kept\n");
  });

  it.each(["stdin", "SIGTERM", "SIGINT"])(
    "[R15] told to end by %s the engine ends everything",
    async (how) => {
      const engine = await start();
      await run(engine);
      const one = await run(engine);
      const running = one.sh("sleep 99").catch(() => "cut");
      await until("the command", () => engine.processes().length > 5);
      const processes = engine.processes();
      remember(engine);
      const exited = new Promise((resolve) => engine.child.once("exit", resolve));
      if (how === "stdin") engine.child.stdin?.end();
      else engine.child.kill(how as NodeJS.Signals);
      expect(await exited).toBe(0);
      expect(processes.filter(isRunning)).toEqual([]);
      expect(await running).toBe("cut");
    },
  );

  it("[R16] fifty sandboxes started at once all answer, and all end", async () => {
    const engine = await start();
    const all = await Promise.all(Array.from({ length: 50 }, () => run(engine)));
    const answers = await Promise.all(all.map(({ sh }, index) => sh(`echo ${index}`)));
    expect(answers.map(({ stdout }) => stdout)).toEqual(all.map((_, index) => `${index}\n`));
    remember(engine);
    await Promise.all(all.map(({ container }) => container.destroy("remove")));
    expect(engine.processes()).toEqual([]);
  });

  it("[R17] no more containers than the engine is told; the refusal says which limit", async () => {
    const engine = await start({ BERTH_ENGINE_CONTAINERS_MAX: "2" });
    const one = await run(engine);
    await run(engine);
    await expect(run(engine)).rejects.toMatchObject({
      code: "too_many",
      hint: expect.stringContaining("BERTH_ENGINE_CONTAINERS_MAX"),
    });
    await one.container.destroy("keep");
    await run(engine);
  });

  it("[R18] an agent that does not come up is a failed start and leaves nothing", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-agent-"));
    const agent = join(folder, "agent");
    writeFileSync(agent, "#!/bin/sh\necho last words >&2\nexit 7\n", { mode: 0o755 });
    chmodSync(folder, 0o755);
    const engine = await start({ BERTH_ENGINE_AGENT: agent });
    const id = newId();
    const call = newStart();
    await expect(engine.container(id).start(call)).rejects.toMatchObject({ code: "start_failed" });
    expect(engine.log()).toContain("last words");
    expect(engine.processes()).toEqual([]);
    rmSync(folder, { recursive: true });
  });

  it("[R19] a destroy ends a start that hangs, at once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-agent-"));
    const agent = join(folder, "agent");
    writeFileSync(agent, "#!/bin/sh\nexec sleep 1000\n", { mode: 0o755 });
    chmodSync(folder, 0o755);
    const engine = await start({ BERTH_ENGINE_AGENT: agent });
    const id = newId();
    const starting = expect(engine.container(id).start(newStart())).rejects.toMatchObject({
      code: "start_failed",
    });
    await until("the hanging agent", () => engine.processes().length === 2);
    remember(engine);
    await engine.container(id).destroy("remove");
    await starting;
    expect(engine.processes()).toEqual([]);
    rmSync(folder, { recursive: true });
  });

  it("[R20] two engines never share a data folder", async () => {
    await start();
    await expect(startEngine(as, { data })).rejects.toThrow("another engine works in");
  });

  it("[R21] a process that eats memory ends alone, and one that forks for ever stays in its bounds", async () => {
    const engine = await start({
      BERTH_ENGINE_MEMORY_MAX: String(256 * 1024 * 1024),
      BERTH_ENGINE_PROCESSES_MAX: "64",
    });
    const greedy = await run(engine);
    const calm = await run(engine);
    const { isolation } = greedy.started;
    // What is not limited is said: then there is nothing to try here.
    if (isolation.memoryLimit) {
      const eaten = await greedy.sh("head -c 600m /dev/zero | tail -c 590m | wc -c");
      expect(eaten.stdout).not.toBe(`${590 * 1024 * 1024}\n`);
      expect((await greedy.sh("echo lives")).stdout).toBe("lives\n");
    }
    expect(isolation.processLimit).toBe(true);
    const many =
      "i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done 2>/dev/null; ls -d /proc/[0-9]* | wc -l";
    const { stdout, stderr } = await greedy.sh(many, 100_000);
    expect(Number(stdout.trim() || 0)).toBeLessThan(70);
    expect(stderr + stdout).toBeDefined();
    expect((await calm.sh("echo calm")).stdout).toBe("calm\n");
  });

  it("[R39] a room is held to the bounds of its own start, and refused those that cannot be kept here", async () => {
    const engine = await start();
    const plain = await run(engine);
    const { isolation } = plain.started;
    const forks =
      "i=0; while [ $i -lt 90 ]; do sleep 600 & i=$((i+1)); done 2>/dev/null; ls -d /proc/[0-9]* | wc -l";
    expect(isolation.processLimit).toBe(true);
    const narrow = await run(engine, { size: { name: "narrow", processes: 48 } });
    expect(Number((await plain.sh(forks, 100_000)).stdout)).toBeGreaterThan(90);
    expect(Number((await narrow.sh(forks, 100_000)).stdout.trim() || 0)).toBeLessThan(54);
    // Far more than the agent has: of the two the kernel chooses the command.
    const small = { name: "small", memoryBytes: 256 * 1024 * 1024 };
    const eats = "head -c 600m /dev/zero | tail -c 590m | wc -c";
    if (isolation.memoryLimit) {
      const one = await run(engine, { size: small });
      expect((await one.sh(eats)).stdout).not.toBe(`${590 * 1024 * 1024}\n`);
      expect((await plain.sh(eats)).stdout).toBe(`${590 * 1024 * 1024}\n`);
    } else {
      const refused = { code: "unsupported", facts: { field: "size" } };
      await expect(run(engine, { size: small })).rejects.toMatchObject(refused);
    }
    const machine = { name: "machine", instance: "basic" } as const;
    await expect(run(engine, { size: machine })).rejects.toMatchObject({ code: "unsupported" });
  });

  it.skipIf(as !== "root")(
    "[R34] an agent that the kernel ends for want of memory is told of as that",
    async () => {
      const engine = await start({ BERTH_ENGINE_MEMORY_MAX: String(96 * 1024 * 1024) });
      const one = await run(engine);
      if (!one.started.isolation.memoryLimit)
        return console.warn("SKIPPED: no memory controller here");
      const told = one.container.monitor(one.startId, limits.monitorWaitMaxMs);
      // Each takes less than the agent, and stands where it stands: of them all the kernel chooses the agent.
      const many = `
import os, time
open("/proc/self/oom_score_adj", "w").write(open("/proc/1/oom_score_adj").read())
for n in range(40):
    if os.fork() == 0:
        kept = bytearray(b"x") * (4 << 20)
        time.sleep(5); os._exit(0)
time.sleep(5)
`;
      const fill = () => one.sh(`python3 -c '${many}'`).catch(() => "cut");
      const life = { over: false };
      void told.then(() => (life.over = true));
      await until("the end of the agent", async () => {
        await fill();
        return life.over;
      });
      expect(await told).toEqual({ exitCode: null, signal: "SIGKILL", reason: "out_of_memory" });
      const again = await run(engine, { id: one.id });
      expect((await again.sh("ls /tmp; echo lives")).stdout).toBe("lives\n");
    },
  );

  it("[R22] the engine's own words: isolation and what is missing, truthfully", async () => {
    const engine = await start();
    const response = await fetch(`${engine.baseUrl}/v1/health`, {
      headers: { authorization: `Bearer ${engine.secret}` },
    });
    const health = (await response.json()) as {
      isolation: Record<string, unknown>;
      missing: string[];
    };
    expect(health.isolation).toMatchObject({
      user: as === "root" ? "own" : "mapped",
      diskLimit: false,
      processes: "namespace",
    });
    expect(health.missing.join(" ")).toMatch(/Disk space/);
    expect(health.missing.some((it) => it.includes("Memory"))).toBe(!health.isolation.memoryLimit);
    const { started } = await run(engine);
    expect({ ...started.isolation }).toMatchObject(health.isolation);
    expect(readFileSync(`${data}/instance`, "utf8")).toMatch(/^[a-z0-9]{8}\n$/);
  });
});

/** Of one sandbox, where the machine has such groups: those that the agent makes, named `c` and a number. */
function groupsOfCommands(data: string, id: string): string[] {
  const instance = readFileSync(`${data}/instance`, "utf8").trim();
  const named = `*/berth-${instance}/${id}/c[0-9]*`;
  const found = spawnSync("find", ["/sys/fs/cgroup", "-type", "d", "-path", named]);
  return String(found.stdout).split("\n").filter(Boolean);
}
