/**
 * Owns one remote command that is followed live: started under the lease, its output as it comes, its input fed, its
 * end by itself, by an interrupt or with the lease.
 * Does not own what comes before and after (flow.ts).
 */
import { randomUUID } from "node:crypto";
import type { SandboxHandle } from "../../client/index.ts";
import { exitCodeOf, type Interrupts } from "../live/interrupts.ts";
import type { Taken } from "../lock/take-lease.ts";
import { feed } from "./feed.ts";
import type { Sinks } from "./sinks.ts";

export type Program = {
  argv: string[];
  cwd?: string;
  env?: Record<string, string>;
  timeoutMs?: number;
};

export type Ended = { exitCode: number | null; signal: string | null; timedOut: boolean };

export type Around = {
  sandbox: SandboxHandle;
  lease: Taken;
  interrupts: Interrupts;
  stdin: NodeJS.ReadStream;
  sinks: Sinks;
  onConnection: (state: "lost" | "back") => void;
  /** It was asked to end, and has not. */
  onSlowEnd: () => void;
};

/** After the first interrupt; then it is ended, whatever it does with its signal. */
const endsWithinMs = 10_000;
/** Until somebody wonders whether it was heard. */
const slowMs = 1_000;

export async function runProcess(program: Program, around: Around): Promise<Ended> {
  const { sandbox, lease, sinks } = around;
  const { id } = await sandbox.startProcess(
    { ...program, onFull: "block", endsWithLease: true },
    // Sent again after a lost answer it is still the same process.
    { lease: lease.token, idempotencyKey: randomUUID() },
  );
  lease.runs({ process: id });
  const over = new AbortController();
  const feeding = feed(
    around.stdin,
    { sandbox, process: id, lease: lease.token },
    over.signal,
  ).catch(() => {
    // The process is over, or its connection: whoever follows its output hears why.
  });
  const ending = endOnInterrupt(id, around, over.signal);
  try {
    const signal = lease.lost;
    const { onConnection } = around;
    for await (const event of sandbox.followLogs(id, { signal, onConnection })) {
      if (event.type === "output") await sinks.write(event.stream, event.bytes);
      if (event.type === "exit") {
        const { exitCode, signal: ended, timedOut } = event;
        return { exitCode, signal: ended, timedOut };
      }
    }
    throw new Error(`the log of process ${id} ended without its exit`);
  } finally {
    over.abort();
    around.stdin.destroy();
    await Promise.all([feeding, ending]);
  }
}

/** Ctrl-C is the remote command's first, and only then the end of it. */
async function endOnInterrupt(
  id: string,
  { sandbox, lease, interrupts, onSlowEnd }: Around,
  over: AbortSignal,
): Promise<void> {
  await either(interrupts.asked, over);
  const { first } = interrupts;
  if (over.aborted || first === undefined) return;
  const options = { lease: lease.token, signal: over };
  // Whose output nobody takes has nothing left to do; many would not even notice a closed pipe.
  if (first.signal !== "SIGPIPE") {
    await sandbox.signalProcess(id, first.signal, options).catch(() => {});
    const { insisted } = interrupts;
    const late = AbortSignal.timeout(endsWithinMs);
    await either(AbortSignal.any([insisted, AbortSignal.timeout(slowMs)]), over);
    if (!over.aborted && !insisted.aborted) onSlowEnd();
    await either(AbortSignal.any([insisted, late]), over);
  }
  if (over.aborted) return;
  await sandbox.endProcess(id, options).catch(() => {});
}

function either(one: AbortSignal, other: AbortSignal): Promise<void> {
  const any = AbortSignal.any([one, other]);
  if (any.aborted) return Promise.resolve();
  return new Promise((resolve) => any.addEventListener("abort", () => resolve(), { once: true }));
}

/** As a shell would tell it; `timeout` ends with 124. */
export function shellCode({ exitCode, signal, timedOut }: Ended): number {
  if (timedOut) return 124;
  return exitCode ?? exitCodeOf(signal ?? "SIGKILL");
}
