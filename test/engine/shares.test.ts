/** What sandboxes share by weight or by bound: the processor, and the kernel's memory for TCP. Only root has the groups. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { identities, type RunningSandbox, run, sharedEngine } from "./test-engine.ts";

describe.runIf(identities().includes("root"))("sandboxes of an engine that is root", () => {
  const engine = sharedEngine("root");

  it("[R45] share the processor by sandbox, not by process: 200 loops in one leave its neighbour its own", async () => {
    const busy = await run(engine);
    const neighbour = await run(engine);
    const calmMs = await medianOfExec(neighbour, 1_500);
    const loops = "for i in $(seq 200); do (while :; do :; done) & done; echo started; wait";
    const isOver = busy.sh(loops, 8_000);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const busyMs = await medianOfExec(neighbour, 5_000);
    expect((await isOver).timedOut).toBe(true);
    const ratio = busyMs / calmMs;
    console.info(
      `exec true: calm ${calmMs.toFixed(1)} ms, next to 200 loops ${busyMs.toFixed(1)} ms, ratio ${ratio.toFixed(1)}`,
    );
    expect(ratio).toBeLessThan(50);
  });

  it("[R46] hold an eighth of their memory in TCP connections that nobody reads, and answer meanwhile", async () => {
    const sandbox = await run(engine, { size: { name: "small", memoryBytes: 512 * MiB } });
    const before = tcpMemoryOfMachine();
    const filled = sandbox.sh(
      `cat > /tmp/fill.py <<'END'\n${fillConnections}\nEND\npython3 /tmp/fill.py`,
      30_000,
    );
    let most = 0;
    let isOver = false;
    void filled.finally(() => (isOver = true));
    while (!isOver) {
      most = Math.max(most, tcpMemoryOfMachine() - before);
      expect((await sandbox.sh("echo here")).stdout).toBe("here\n");
    }
    expect((await filled).stdout).toMatch(/^sent [1-9]/);
    console.info(`TCP memory: ${Math.round(most / MiB)} MiB (${(await filled).stdout.trim()})`);
    expect(most).toBeLessThan(96 * MiB);
  });
});

const MiB = 1024 * 1024;

/** Fills 40 connections over the loopback of the sandbox, which takes some 300 MiB if nothing limits it. */
const fillConnections = `
import socket, time
server = socket.create_server(("127.0.0.1", 0), backlog=64)
kept, sent = [], 0
for n in range(40):
    one = socket.create_connection(server.getsockname())
    kept += [one, server.accept()[0]]
    one.setblocking(False)
    try:
        while True: sent += one.send(bytes(65536))
    except BlockingIOError: pass
time.sleep(1)
for one in kept[::2]:
    try:
        while True: sent += one.send(bytes(65536))
    except BlockingIOError: pass
time.sleep(2)
print("sent", sent)
`;

/** The pages that all connections of the machine hold, of which test and server need few. */
function tcpMemoryOfMachine(): number {
  const pages = /^TCP:.* mem (\d+)$/m.exec(readFileSync("/proc/net/sockstat", "utf8"))?.[1];
  return Number(pages) * 4096;
}

/** The median duration of `true` in a sandbox, called again and again for a while. */
async function medianOfExec(sandbox: RunningSandbox, forMs: number): Promise<number> {
  const durations: number[] = [];
  const end = performance.now() + forMs;
  while (performance.now() < end) {
    const begun = performance.now();
    await sandbox.sh("true", 60_000);
    durations.push(performance.now() - begun);
  }
  return durations.sort((a, b) => a - b)[Math.floor(durations.length / 2)] ?? Number.NaN;
}
