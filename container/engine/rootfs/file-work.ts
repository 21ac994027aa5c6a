/**
 * Runs programs on the files of sandboxes with the rights of their owner, and ends them when the engine ends.
 */
import { run } from "../run.ts";

/**
 * Without root, files may exist that their own owner cannot read. In a user namespace of its own the engine is root
 * over exactly its own files.
 */
function asOwner(argv: string[]): string[] {
  // These programs end with a killed engine: they would otherwise write into folders that the next engine removes.
  const endsWithEngine = ["setpriv", "--pdeathsig", "KILL", "--", ...argv];
  return process.getuid?.() === 0
    ? endsWithEngine
    : ["unshare", "--user", "--map-root-user", "--", ...endsWithEngine];
}

/** Aborts all running work when the engine ends, whether or not a call waits for it. */
const shutdown = new AbortController();
const runningWork = new Set<Promise<string>>();

/** Ends the running programs and waits for their end. Half-written results are in the trash. */
export async function cancelFileWork(): Promise<void> {
  shutdown.abort();
  await Promise.allSettled(runningWork);
}

export async function runFileWork(
  argv: string[],
  options: {
    timeoutMs: number;
    signal?: AbortSignal | undefined;
    outputCharactersMax?: number;
  },
): Promise<string> {
  const signals = [shutdown.signal, ...(options.signal === undefined ? [] : [options.signal])];
  const running = run(asOwner(argv), { ...options, signal: AbortSignal.any(signals) });
  runningWork.add(running);
  return await running.finally(() => runningWork.delete(running));
}
