/**
 * Owns the load: what is asked, how often, and how long each answer took. The pace is fixed: who is late leaves out.
 * Does not own the server.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Berth, SandboxHandle } from "../../src/client/index.ts";

export type Took = { verb: string; atMs: number; ms: number; failed?: string };

type Work = {
  everyMs: number;
  /** So many at once while it hurries. */
  lanes?: number;
  act: (sandbox: SandboxHandle, berth: Berth) => Promise<void>;
};

const content = Buffer.alloc(50_000, "soak");
const lines = 50;

const works: Record<string, Work> = {
  exec: {
    everyMs: 100,
    lanes: 8,
    act: async (sandbox) => void (await sandbox.exec({ command: "true" })),
  },
  patch: {
    everyMs: 100,
    lanes: 8,
    act: async (sandbox) => void (await sandbox.patchMetadata({ at: String(performance.now()) })),
  },
  get: { everyMs: 200, lanes: 4, act: async (sandbox) => void (await sandbox.get()) },
  file: {
    everyMs: 500,
    lanes: 4,
    act: async (sandbox) => {
      await sandbox.writeFile("/workspace/soak", content);
      let bytes = 0;
      for await (const piece of (await sandbox.readFile("/workspace/soak")).body) {
        bytes += piece.length;
      }
      if (bytes !== content.length) throw new Error(`${bytes} bytes came back`);
    },
  },
  lease: {
    everyMs: 500,
    act: async (sandbox) => {
      const lease = await sandbox.acquireLease({ holder: "soak", waitMs: 20_000 });
      if (!("token" in lease)) throw new Error("the lease was not granted");
      await sandbox.releaseLease(lease.token);
    },
  },
  process: {
    everyMs: 1_000,
    act: async (sandbox) => {
      const { id } = await sandbox.startProcess({ command: `seq ${lines}` });
      let text = "";
      for await (const event of sandbox.followLogs(id)) {
        if (event.type === "output") text += Buffer.from(event.bytes).toString();
      }
      if (text.split("\n").length !== lines + 1) throw new Error("the log is not whole");
    },
  },
  session: {
    everyMs: 1_000,
    act: async (sandbox) => {
      const { id } = await sandbox.createSession();
      await sandbox.execInSession(id, { command: "word=soak" });
      const { stdout } = await sandbox.execInSession(id, { command: "echo $word" });
      if (stdout !== "soak\n") throw new Error("the session has forgotten");
      await sandbox.endSession(id);
    },
  },
  terminal: {
    everyMs: 2_000,
    act: async (sandbox) => {
      const { id } = await sandbox.createTerminal({ argv: ["sh", "-c", "read it; echo $it-back"] });
      await using live = await sandbox.attachTerminal(id, { after: 0 });
      live.write(Buffer.from("word\n"));
      let text = "";
      for await (const event of live) {
        if (event.type === "output") text += Buffer.from(event.bytes).toString();
      }
      if (!text.includes("word-back")) throw new Error("the terminal gave nothing back");
    },
  },
  life: {
    everyMs: 2_000,
    lanes: 6,
    act: async (_, berth) => {
      const { id } = await berth.create({ waitMs: 25_000 });
      await berth.sandbox(id).exec({ command: "true" });
      await berth.sandbox(id).destroy();
    },
  },
  list: { everyMs: 1_000, act: async (_, berth) => void (await berth.list()) },
  checkpoint: {
    everyMs: 10_000,
    act: async (sandbox) => {
      const { id } = await sandbox.makeCheckpoint({}, { waitMs: 20_000 });
      await sandbox.removeCheckpoint(id);
    },
  },
};

export const verbs = Object.keys(works);

/**
 * Each kind in a box of its own choosing, the boxes in turn. Resolves when the last answer has come.
 * Those that need the box alone go to the first, where nobody else works. Who hurries does not wait for the next turn,
 * and some go in several lanes: caches and heaps get as large as they do in hours of the pace that follows.
 */
export async function load(
  berth: Berth,
  boxes: string[],
  took: (one: Took) => void,
  { hurryMs, over }: { hurryMs: number; over: AbortSignal },
): Promise<void> {
  const hurriesUntil = performance.now() + hurryMs;
  const [alone = "", ...shared] = boxes;
  const lanes = Object.entries(works).flatMap(([verb, work]) =>
    Array.from({ length: work.lanes ?? 1 }, (_, lane) => ({ verb, lane, ...work })),
  );
  const working = lanes.map(async ({ verb, lane, everyMs, act }) => {
    const needsAll = verb === "lease" || verb === "checkpoint";
    const isNeeded = () => !over.aborted && (lane === 0 || performance.now() < hurriesUntil);
    for (let n = lane, next = performance.now(); isNeeded(); n += 1) {
      const box = needsAll ? alone : (shared[n % shared.length] ?? alone);
      const atMs = performance.now();
      const failed = await act(berth.sandbox(box), berth).then(
        () => undefined,
        (error: unknown) => String(error),
      );
      const ms = performance.now() - atMs;
      took({ verb, atMs, ms, ...(failed === undefined ? {} : { failed }) });
      const now = performance.now();
      if (now < hurriesUntil) next = now;
      else while (next <= now) next += everyMs;
      await pause(next - now, undefined, { signal: over }).catch(() => {});
    }
  });
  await Promise.all(working);
}
