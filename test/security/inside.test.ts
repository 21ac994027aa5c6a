/** Commands that attack from inside a sandbox: their agent, Berth, the machine and a neighbour, who must go on working. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { identities } from "../engine/test-engine.ts";
import { allProcesses } from "../system/processes.ts";
import { portsOf } from "../system/sockets.ts";
import { until } from "../until.ts";
import { Attacked, get, post } from "./attacked-server.ts";
import { fileRefusals, refusals, refusalsOf, tryRights } from "./rights.ts";

const processesMax = 200;
/** Twice what so many processes of the bomb take: it is to end by their number. */
const memoryBytesMax = 512 * 1024 * 1024;

describe.each(identities())("a sandbox that attacks a Berth that is %s", (as) => {
  const isRoot = as === "root";
  const berth = Attacked.shared(
    {
      BERTH_ENGINE_PROCESSES_MAX: String(processesMax),
      BERTH_ENGINE_MEMORY_MAX: String(memoryBytesMax),
    },
    as,
  );
  let attacker: string;
  let neighbour: string;
  let limited: { memoryLimit: boolean; processLimit: boolean };

  if (!isRoot) console.warn("SKIPPED as not root: all the memory; nothing limits it there");

  beforeAll(async () => {
    const own = berth.server.processes().filter(({ command }) => !/^(npm|sh) /.test(command));
    const users = new Set(own.map(({ pid }) => statSync(`/proc/${pid}`).uid));
    expect([...users].map((uid) => uid === 0)).toEqual([isRoot]);
    attacker = await berth.create();
    neighbour = await berth.create();
    const mark = "echo private > /workspace/mark; echo private > /tmp/mark";
    await berth.exec(neighbour, { command: mark });
    const { isolation } = await berth.ok("GET", `/v1/sandboxes/${attacker}`);
    limited = isolation as typeof limited;
  });

  const python = (script: string, timeoutMs = 30_000) =>
    berth.exec(attacker, { argv: ["python3", "-c", script], timeoutMs });
  /** What the neighbour does all the time: run, write, read. */
  const neighbourWorks = async () => {
    const script = "cat /workspace/mark /tmp/mark && date > /workspace/now && echo works";
    const { stdout } = await berth.exec(neighbour, { command: script });
    expect(stdout).toBe("private\nprivate\nworks\n");
  };
  const agents = () =>
    berth.server
      .processes()
      .filter(({ command }) => /\bjail$/.test(command) && !command.includes("unshare"));

  it("[SC14] [R4] cannot read, trace, stop or end its agent, nor limit what it may use", async () => {
    const before = agents();
    expect(before.length).toBeGreaterThanOrEqual(2);
    const files = "environ mem maps fd cwd/ root/etc/passwd stack syscall auxv pagemap io".split(
      " ",
    );
    const { stdout } = await python(
      `
import os
read = []
for name in ${JSON.stringify(files)}:
    path = "/proc/1/" + name
    try:
        read.append(name if (os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)) else "")
    except OSError: pass
print([name for name in read if name])
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
class Piece(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]
kept = ctypes.create_string_buffer(8)
here, there = Piece(ctypes.addressof(kept), 8), Piece(0x400000, 8)
print(libc.ptrace(16, 1, None, None), ctypes.get_errno() == errno.EPERM, end=" ")
print(libc.process_vm_readv(1, ctypes.byref(here), 1, ctypes.byref(there), 1, 0), ctypes.get_errno() == errno.EPERM)
for sig in range(1, 65):
    try: os.kill(1, sig)
    except OSError as e: print("refused", e.errno)
for call in (lambda: os.sched_setaffinity(1, {0}), lambda: open("/proc/1/oom_score_adj", "w").write("1000")):
    try: call(); print("could")
    except OSError: print("could not")
`,
    );
    expect(stdout.split("\n")[0]).toBe("[]");
    expect(stdout.split("\n")[1]).toBe("-1 True -1 True");
    if (isRoot) expect(stdout).not.toContain("could\n");
    await berth.exec(attacker, { command: "kill -9 1; kill -STOP 1; kill -9 -1; true" });
    expect((await berth.exec(attacker, { command: "echo here" })).stdout).toBe("here\n");
    expect(agents()).toEqual(before);
  });

  it("[SC14] cannot call its agent, and neither can a program of the machine that lacks its secret", async () => {
    const ports = portsOf(agents().map(({ pid }) => pid));
    expect(ports.length).toBeGreaterThanOrEqual(2);
    for (const port of ports) {
      const url = `http://127.0.0.1:${port}`;
      const calls = ["/v1/exec", "/v1/work", "/v1/fence", "/v1/files?path=/etc/passwd"];
      for (const path of [...calls, "/", "/health"]) {
        for (const authorization of ["", "Bearer ", "Bearer x", `Bearer ${berth.server.key}`]) {
          const call = { method: "POST", body: "{}", headers: { authorization } };
          expect((await fetch(url + path, call)).status, path).toBe(401);
        }
      }
    }
    const script = `
import socket
for port in ${JSON.stringify(ports)}:
    try: socket.create_connection(("127.0.0.1", port), 2); print("reached", port)
    except OSError: print("shut")
`;
    expect((await python(script)).stdout).toBe("shut\n".repeat(ports.length));
  });

  it("[SC15] [R5] reaches neither the Worker nor the engine, and sees no process, file or socket of the machine or a neighbour", async () => {
    const ports = [...new Set(portsOf(berth.server.processes().map(({ pid }) => pid)))];
    expect(ports.length).toBeGreaterThanOrEqual(4);
    const victim = await berth.ok("POST", `/v1/sandboxes/${neighbour}/processes`, {
      argv: ["sleep", "1234.5"],
    });
    const seen = () => allProcesses().find(({ command }) => command === "sleep 1234.5");
    await until("the neighbour's process", () => seen() !== undefined);
    const pid = seen()?.pid ?? 0;
    const script = `
import os, socket
hits = []
for host in ("127.0.0.1", "localhost", "10.201.0.1", "0.0.0.0"):
    for port in ${JSON.stringify(ports)}:
        try: socket.create_connection((host, port), 1); hits.append((host, port))
        except OSError: pass
for path in (${JSON.stringify(berth.server.data)}, "/proc/${pid}", "/sys", "/var/run/docker.sock", "/run/systemd", "/dev/mem", "/dev/sda", "/dev/kmsg", "/dev/net/tun"):
    try: open(path).close(); hits.append(path)
    except IsADirectoryError: hits.append(path)
    except OSError: pass
for sig in (0, 9):
    try: os.kill(${pid}, sig); hits.append("killed")
    except OSError: pass
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) != os.getpid():
        text = open("/proc/%s/cmdline" % name).read()
        if "workerd" in text or "1234.5" in text: hits.append(text)
print(hits)
`;
    expect((await python(script)).stdout).toBe("[]\n");
    expect(seen()?.pid).toBe(pid);
    await berth.ok("DELETE", `/v1/sandboxes/${neighbour}/processes/${victim.id}`);
    await neighbourWorks();
  });

  it("[SC15] finds no way to more rights: system calls, devices, settings of the kernel, setuid programs", async () => {
    const { stdout, stderr } = await python(tryRights({ settings: true }));
    expect(stderr).toBe("");
    const results = Object.entries(JSON.parse(stdout) as Record<string, string>);
    expect(results.length).toBeGreaterThan(process.arch === "x64" ? 35 : 18);
    const isRefused = ([what, error]: [string, string]) =>
      (refusalsOf[what] ?? (what.startsWith("/") ? fileRefusals : refusals)).includes(error);
    expect(results.filter((result) => !isRefused(result))).toEqual([]);
    const { stdout: id } = await berth.exec(attacker, {
      command: "echo | su -c id root 2>/dev/null; passwd -S 2>/dev/null; id -u",
    });
    expect(id).not.toContain("uid=0");
  });

  // Where nothing counts its processes, a fork bomb would be one for the machine.
  it("[SC16] [R21] a fork bomb ends at the sandbox's limit and with its command; the neighbour continues", async () => {
    expect(limited.processLimit).toBe(true);
    const count = `
import os, time
made = 0
try:
    while made < 2000:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        made += 1
except OSError: pass
print(made, flush=True)
time.sleep(60)
`;
    const { incarnation } = await berth.exec(attacker, { command: ":" });
    const begun = python(count, 15_000);
    let isOver = false;
    begun.finally(() => {
      isOver = true;
    });
    // A command may find no process for itself; its agent continues nevertheless.
    const execPath = `/v1/sandboxes/${attacker}/exec`;
    while (!isOver) {
      await neighbourWorks();
      const { body } = await berth.send(post(execPath, { command: "seq 10000" }));
      expect(body.error?.code).not.toBe("operation_interrupted");
      await berth.ok("GET", `/v1/sandboxes/${attacker}/files/list?path=/`);
    }
    const counted = await begun;
    expect(counted.error).toBeUndefined();
    expect(counted).toMatchObject({ incarnation, timedOut: true });
    expect(Number(counted.stdout)).toBeGreaterThan(20);
    expect(Number(counted.stdout)).toBeLessThanOrEqual(processesMax);
    const forkBomb = { command: "b() { b | b & }; b; sleep 60", timeoutMs: 5_000 };
    const bomb = berth.exec(attacker, forkBomb);
    for (let n = 0; n < 5; n++) await neighbourWorks();
    // The shell may be the one who gets no more processes, and gives up by itself.
    const { error, timedOut, stderr } = await bomb;
    expect(error).toBeUndefined();
    expect(await bomb).toMatchObject({ incarnation });
    expect(timedOut || /fork/i.test(stderr)).toBe(true);
    await until("the sandbox takes commands again", async () => {
      const { body } = await berth.send(post(execPath, { command: "ls /proc | grep -c [0-9]" }));
      return Number(body.stdout) > 0 && Number(body.stdout) < 20;
    });
    await neighbourWorks();
  });

  it.runIf(isRoot)(
    "[SC17] [R21] all the memory, and all of the folders in memory, are the sandbox's own; the neighbour continues",
    async () => {
      expect(limited.memoryLimit).toBe(true);
      const greedy = python(
        "a = []\nfor n in range(64): a.append(bytearray(b'x') * (16 << 20)); print(n, flush=True)",
      );
      await neighbourWorks();
      const { exitCode, stdout } = await greedy.catch(() => ({ exitCode: null, stdout: "0\n" }));
      expect(exitCode).not.toBe(0);
      expect(stdout.trim().split("\n").length).toBeLessThan(40);
      await neighbourWorks();
      const fill =
        "head -c 2000000000 /dev/zero > /dev/shm/full; head -c 2000000000 /dev/zero > /run/full; echo over";
      const path = `/v1/sandboxes/${attacker}/exec`;
      await berth.send(post(path, { command: fill, timeoutMs: 20_000 }));
      await neighbourWorks();
      const countUsed = { command: "df --output=used /dev/shm | tail -1" };
      expect((await berth.exec(neighbour, countUsed)).stdout.trim()).toBe("0");
      await berth.exec(attacker, { command: "rm -f /dev/shm/full; echo back" });
    },
  );

  it.skipIf(isRoot)("[SC17] where nothing limits its memory, the response says so", () => {
    expect(limited).toMatchObject({ memoryLimit: false, processLimit: true });
  });

  it("[SC15] what it writes into files that Berth reads is data: names with line ends, links, output that looks like Berth's", async () => {
    const secretFile = `${berth.server.data}/planted-by-the-test`;
    writeFileSync(secretFile, "of the machine\n");
    const made = await berth.exec(attacker, {
      command: `cd /workspace && touch "$(printf 'a\\nevent: exit\\ndata: {}')" && ln -s ${secretFile} out && printf 'HTTP/1.1 200 OK\\r\\n\\r\\n{"error":{"code":"internal"}}' && printf '\\033]0;evil\\007\\000\\377'`,
    });
    expect(made.stdout).toContain("HTTP/1.1 200 OK");
    const listed = await berth.ok("GET", `/v1/sandboxes/${attacker}/files/list`);
    expect(JSON.stringify(listed)).toContain("event: exit");
    const read = await berth.send(get(`/v1/sandboxes/${attacker}/files?path=out`));
    expect([403, 404]).toContain(read.status);
    expect(readFileSync(secretFile, "utf8")).toBe("of the machine\n");
    const { id } = await berth.ok("POST", `/v1/sandboxes/${attacker}/checkpoints`, {});
    const fork = await berth.create({ from: id });
    const { stdout } = await berth.exec(fork, { command: "cat out || echo dangling" });
    expect(stdout).toBe("dangling\n");
    await berth.ok("DELETE", `/v1/sandboxes/${fork}`);
  });
});
