/**
 * The load of a soak: which calls, how often, and how long each took. The pace is fixed: a late call skips its missed
 * turns.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Berth, Sandbox } from "../../src/client/index.ts";

export type CallTime = { verb: string; atMs: number; ms: number; failed?: string };

type LoadKind = {
  everyMs: number;
  /** The number of concurrent lanes during the warm-up. */
  lanes?: number;
  act: (sandbox: Sandbox, berth: Berth) => Promise<void>;
};

const content = Buffer.alloc(50_000, "soak");
const lines = 50;

const kinds: Record<string, LoadKind> = {
  exec: {
    everyMs: 100,
    lanes: 8,
    act: async (sandbox) => void (await sandbox.exec({ command: "true" })),
  },
  patch: {
    everyMs: 100,
    lanes: 8,
    act: async (sandbox) =>
      void (await sandbox.metadata.patch({ time: String(performance.now()) })),
  },
  get: { everyMs: 200, lanes: 4, act: async (sandbox) => void (await sandbox.get()) },
  file: {
    everyMs: 500,
    lanes: 4,
    act: async (sandbox) => {
      await sandbox.files.write("/workspace/soak", content);
      let bytes = 0;
      for await (const piece of (await sandbox.files.stream("/workspace/soak")).body) {
        bytes += piece.length;
      }
      if (bytes !== content.length) throw new Error(`${bytes} bytes were read back`);
    },
  },
  lease: {
    everyMs: 500,
    act: async (sandbox) => {
      const lease = await sandbox.lease.hold({ holder: "soak", waitMs: 20_000 });
      await lease.release();
    },
  },
  process: {
    everyMs: 1_000,
    act: async (sandbox) => {
      const { id } = await sandbox.processes.start({ command: `seq ${lines}` });
      let text = "";
      for await (const event of sandbox.process(id).logs()) {
        if (event.type === "output") text += Buffer.from(event.bytes).toString();
      }
      if (text.split("\n").length !== lines + 1) throw new Error("the log is incomplete");
    },
  },
  session: {
    everyMs: 1_000,
    act: async (sandbox) => {
      const { id } = await sandbox.sessions.create();
      await sandbox.session(id).exec({ command: "word=soak" });
      const { stdout } = await sandbox.session(id).exec({ command: "echo $word" });
      if (stdout !== "soak\n") throw new Error("the session lost its variable");
      await sandbox.session(id).delete();
    },
  },
  terminal: {
    everyMs: 2_000,
    act: async (sandbox) => {
      const { id } = await sandbox.terminals.create({
        argv: ["sh", "-c", "read it; echo $it-back"],
      });
      await using live = await sandbox.terminal(id).attach({ after: 0 });
      live.write(Buffer.from("word\n"));
      let text = "";
      for await (const event of live) {
        if (event.type === "output") text += Buffer.from(event.bytes).toString();
      }
      if (!text.includes("word-back")) throw new Error("the terminal did not echo");
    },
  },
  lifecycle: {
    everyMs: 2_000,
    lanes: 6,
    act: async (_, berth) => {
      const { id } = await berth.create({ waitMs: 25_000 });
      await berth.sandbox(id).exec({ command: "true" });
      await berth.sandbox(id).delete();
    },
  },
  list: { everyMs: 1_000, act: async (_, berth) => void (await berth.list()) },
  checkpoint: {
    everyMs: 10_000,
    act: async (sandbox) => {
      const { id } = await sandbox.checkpoints.create(undefined, { waitMs: 20_000 });
      await sandbox.checkpoints.delete(id);
    },
  },
};

export const verbs = Object.keys(kinds);

/**
 * Runs each kind of call on the sandboxes in turn and resolves when the last call has ended. Calls that need a
 * sandbox exclusively use the first one. The warm-up has no pauses and several lanes, so that caches and heaps grow
 * as large as in hours of the steady pace.
 */
export async function load(
  berth: Berth,
  sandboxIds: string[],
  onCall: (call: CallTime) => void,
  { warmUpMs, over }: { warmUpMs: number; over: AbortSignal },
): Promise<void> {
  const warmUpUntil = performance.now() + warmUpMs;
  const [exclusive = "", ...shared] = sandboxIds;
  const lanes = Object.entries(kinds).flatMap(([verb, work]) =>
    Array.from({ length: work.lanes ?? 1 }, (_, lane) => ({ verb, lane, ...work })),
  );
  const running = lanes.map(async ({ verb, lane, everyMs, act }) => {
    const isExclusive = verb === "lease" || verb === "checkpoint";
    const isActive = () => !over.aborted && (lane === 0 || performance.now() < warmUpUntil);
    for (let n = lane, next = performance.now(); isActive(); n += 1) {
      const sandboxId = isExclusive ? exclusive : (shared[n % shared.length] ?? exclusive);
      const atMs = performance.now();
      const failed = await act(berth.sandbox(sandboxId), berth).then(
        () => undefined,
        (error: unknown) => String(error),
      );
      const ms = performance.now() - atMs;
      onCall({ verb, atMs, ms, ...(failed === undefined ? {} : { failed }) });
      const now = performance.now();
      if (now < warmUpUntil) next = now;
      else while (next <= now) next += everyMs;
      await pause(next - now, undefined, { signal: over }).catch(() => {});
    }
  });
  await Promise.all(running);
}
