/** Limits that the kernel counts for a user, who is the same in all sandboxes: one must not take them from the others. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type LimitingMachine, userLimitsOf } from "../../container/engine/sandbox/user-limits.ts";
import { identities, type RunningSandbox, run, sharedEngine } from "./test-engine.ts";

const processesEach = 1024;

/** Only with this capability can a limit be raised, and one of another user's process be changed. */
const raisesLimits = (() => {
  const effective = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return ((BigInt(`0x${effective ?? "0"}`) >> 24n) & 1n) === 1n;
})();

describe("the limits of a sandbox's user", () => {
  const folder = { folder: "/nowhere", version: 2 } as const;
  const groups = { unified: undefined, engineGroup: undefined, cpu: undefined };
  const grouped = { ...groups, memory: folder, processes: folder };
  const without = { ...groups, memory: undefined, processes: undefined };
  const bounds = { memoryBytes: 1, processes: processesEach };
  const limitsOf = (machine: Partial<LimitingMachine>) =>
    userLimitsOf(
      {
        user: "own",
        cgroups: grouped,
        raisesUserLimits: true,
        accountsSignals: true,
        ...machine,
      },
      bounds,
    );
  const all = (limit: string) => ({
    ...{ processes: limit, pendingSignals: limit, messageQueueBytes: limit },
  });

  it("[R47] are none where groups bound the same, and stay as they are where nothing does", () => {
    expect(limitsOf({})).toEqual(all("unlimited"));
    expect(limitsOf({ raisesUserLimits: false })).toEqual(all("inherited"));
    const messageQueueBytes = "unlimited";
    expect(limitsOf({ cgroups: without })).toEqual({ ...all("inherited"), messageQueueBytes });
    const older = { ...all("unlimited"), pendingSignals: "inherited" };
    expect(limitsOf({ accountsSignals: false })).toEqual(older);
  });
});

describe.each(identities())("two sandboxes of an engine that is %s", (as) => {
  const engine = sharedEngine(as);
  const limitEngine = (option: string) => {
    const limited = spawnSync("prlimit", ["--pid", String(engine.child.pid), option]);
    expect(limited.status, String(limited.stderr)).toBe(0);
  };
  const isShared = as === "root" && !raisesLimits;
  if (isShared) console.warn("SKIPPED as root: raised limits, which need CAP_SYS_RESOURCE");

  it("[R47] one that queues all the signals it can leaves the other its own, or the engine says that it does not", async () => {
    if (as === "root" && raisesLimits) limitEngine("--sigpending=20000");
    const greedy = await run(engine);
    const neighbour = await run(engine);
    if (isShared && greedy.started.isolation.user !== "ranged") {
      expect((await missingOf()).join()).toContain("CAP_SYS_RESOURCE");
      return;
    }
    const most = as === "root" ? (isShared ? 200_000 : 25_000) : 120_000;
    const holding = hold(greedy, queueSignals(most));
    const count = await holding.count();
    // Ids of its own have the machine's limit each.
    if (isShared) expect(count).toBeGreaterThan(0);
    else expect(count).toBe(as === "root" ? most : 4 * processesEach);
    expect((await python(neighbour, queueSignals(100))).stdout).toBe("100\n");
    await holding.end();
    expect((await missingOf()).join()).not.toContain("CAP_SYS_RESOURCE");
  });

  it.runIf(as === "root" && raisesLimits)(
    "[R47] one that starts processes and opens message queues leaves the other its own",
    async () => {
      limitEngine("--nproc=150");
      const size = { name: "narrow", processes: 120 };
      const greedy = await run(engine, { size });
      const neighbour = await run(engine, { size });
      for (const script of [startProcesses, openQueues]) {
        const holding = hold(greedy, script(90));
        expect(await holding.count()).toBe(90);
        expect((await python(neighbour, script(90))).stdout).toBe("90\n");
        await holding.end();
      }
    },
  );

  it("[R22] the engine says what all sandboxes share where they are one user of the kernel, and nothing elsewhere", async () => {
    const { user } = (await run(engine)).started.isolation;
    const missing = (await missingOf()).join();
    expect(/inotify.*epoll.*in flight/.test(missing)).toBe(user !== "ranged");
  });

  async function missingOf(): Promise<string[]> {
    const headers = { authorization: `Bearer ${engine.secret}` };
    const response = await fetch(`${engine.baseUrl}/v1/health`, { headers });
    return ((await response.json()) as { missing: string[] }).missing;
  }
});

const python = (sandbox: RunningSandbox, script: string) =>
  sandbox.sh(
    `cat > /tmp/limit.py <<'END'\n${script}\nprint(count)\nEND\npython3 /tmp/limit.py`,
    60_000,
  );

/** Runs a script that sets `count`, and keeps what it holds until `end`. */
function hold(sandbox: RunningSandbox, script: string) {
  const wait = `
import os, time
open("/tmp/count", "w").write(str(count))
while not os.path.exists("/tmp/end"): time.sleep(0.05)
for name in ("/tmp/count", "/tmp/end"): os.remove(name)`;
  const over = python(sandbox, script + wait);
  return {
    async count() {
      const poll =
        "for i in $(seq 300); do [ -s /tmp/count ] && break; sleep 0.1; done; cat /tmp/count";
      return Number((await sandbox.sh(poll, 60_000)).stdout);
    },
    async end() {
      await sandbox.sh("touch /tmp/end");
      const { stderr, timedOut } = await over;
      expect({ stderr, timedOut }).toEqual({ stderr: "", timedOut: false });
    },
  };
}

const queueSignals = (most: number) => `
import ctypes, os, signal
libc = ctypes.CDLL(None)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
count = 0
while count < ${most} and libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), None) == 0: count += 1
`;

const openQueues = (most: number) => `
import ctypes, os
libc = ctypes.CDLL(None)
count = 0
while count < ${most} and libc.mq_open(b"/q%d" % count, os.O_CREAT | os.O_RDWR, 0o600, None) != -1: count += 1
for n in range(count): libc.mq_unlink(b"/q%d" % n)
`;

const startProcesses = (most: number) => `
import atexit, subprocess
held, count = [], 0
atexit.register(lambda: [one.kill() for one in held])
try:
    while count < ${most}: held.append(subprocess.Popen(["sleep", "60"])); count += 1
except OSError: pass
`;
