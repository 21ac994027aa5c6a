import { describe, expect, it } from "vitest";
import type { Viewer } from "../../agent/terminals/terminal-socket.ts";
import { type Random, randomOf } from "../../linearizability/history.ts";
import { sharedServerOfFile } from "../shared-server.ts";
import { type Held, isFull, openViewer, Runs } from "./runs.ts";

const wide = 16;
const settleMs = 120_000;
const all = isFull
  ? { execs: 10_000, processes: 100, terminals: 50 }
  : { execs: 1_000, processes: 16, terminals: 16 };
/** As much of each kind as has everything made that is made once. */
const warm = isFull
  ? { execs: 1_500, processes: 24, terminals: 24 }
  : { execs: 700, processes: 12, terminals: 12 };
const processBytes = 20 * 1024 * 1024;

type Amount = typeof all;

const server = await sharedServerOfFile();

describe("resources of the agent", () => {
  it("[M1] commands, processes of 20 MB of output and terminals in any order leave the agent's memory, processes, PTYs and descriptors as they were", {
    timeout: 600_000,
  }, async () => {
    const runs = await Runs.in(server);
    await mixed(runs, warm, randomOf(1));
    const before = await runs.still(settleMs);
    const random = randomOf(20);
    const most = await mixed(runs, all, random);
    // It was not for nothing.
    expect(most.processes).toBeGreaterThan(before.processes + 4);
    expect(most.ptys).toBeGreaterThan(4);
    expect(most.descriptors).toBeGreaterThan(before.descriptors + 16);
    // The runtime gives memory back when it has rested for a while.
    const after = await runs.back(before, before.memoryMiB * 1.2, settleMs);
    console.log(JSON.stringify({ before, most, after }));
    expect(runs.devices()).toEqual([]);
  });
});

/** Shuffled, some at once; answers the most that was held at any look. */
async function mixed(runs: Runs, amount: Amount, random: Random) {
  const open: Terminal[] = [];
  let made = 0;
  const kinds = {
    exec: async (n: number) => {
      const { body } = await runs.call("POST", "exec", { command: `echo ${n}` });
      expect(body).toMatchObject({ exitCode: 0, stdout: `${n}\n` });
    },
    process: async () => {
      const { id } = await runs.start({ argv: ["head", "-c", String(processBytes), "/dev/zero"] });
      const { exitCode, log } = await runs.exited(id);
      expect([exitCode, log.stdoutBytes]).toEqual([0, processBytes]);
      // It forgets: a record keeps its log.
      expect((await runs.call("DELETE", `processes/${id}`)).status).toBe(200);
    },
    open: async () => {
      made += 1;
      open.push(await opened(runs, `t${random(1e9)}-${made}`, made % 2 === 0));
    },
    close: async () => {
      const [one] = open.splice(random(open.length), 1);
      if (one !== undefined) await closed(runs, one);
    },
  };
  const tasks = shuffled(
    [
      ...Array.from({ length: amount.execs }, () => kinds.exec),
      ...Array.from({ length: amount.processes }, () => kinds.process),
      ...Array.from({ length: amount.terminals }, () => kinds.open),
      ...Array.from({ length: amount.terminals }, () => kinds.close),
    ],
    random,
  );
  const most = runs.held();
  let next = 0;
  const stream = async () => {
    for (let index = next++; index < tasks.length; index = next++) {
      await tasks[index]?.(index);
      if (index % 50 !== 0) continue;
      const now = runs.held();
      for (const kind of Object.keys(most) as (keyof Held)[]) {
        most[kind] = Math.max(most[kind], now[kind]);
      }
    }
  };
  await Promise.all(Array.from({ length: wide }, stream));
  while (open.length > 0) await kinds.close();
  expect(made).toBe(amount.terminals);
  return most;
}

type Terminal = { id: string; viewer: Viewer | undefined };

/** With a viewer from its first byte on: nobody has to draw anything. */
async function opened(runs: Runs, id: string, seen: boolean): Promise<Terminal> {
  const { status } = await runs.call("POST", "terminals", { id, argv: ["sh"] });
  expect(status).toBe(201);
  if (!seen) return { id, viewer: undefined };
  const viewer = await openViewer(server, `${runs.id}/terminals/${id}`, { after: 0 });
  viewer.type("seq 1 20000\n");
  return { id, viewer };
}

/** Half by their own end, half by a call; half of the viewers are cut off. */
async function closed(runs: Runs, { id, viewer }: Terminal): Promise<void> {
  if (viewer !== undefined && id.endsWith("4")) viewer.cut();
  else if (viewer !== undefined && id.endsWith("6")) {
    viewer.type("exit\n");
    return;
  }
  expect((await runs.call("DELETE", `terminals/${id}`)).status).toBe(200);
  viewer?.cut();
}

function shuffled<T>(all: T[], random: Random): T[] {
  for (let index = all.length - 1; index > 0; index--) {
    const other = random(index + 1);
    [all[index], all[other]] = [all[other] as T, all[index] as T];
  }
  return all;
}
