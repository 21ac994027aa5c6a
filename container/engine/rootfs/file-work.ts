/**
 * Owns running programs on the files of sandboxes: with the rights of their owner, ended and waited for by the engine's
 * end. Does not own which programs.
 */
import { run } from "../run.ts";

/**
 * A single user may have made files that it cannot read itself. In a user namespace of its own it may:
 * there it is root over its own files, and over nobody else's.
 */
function asOwner(argv: string[]): string[] {
  // An engine that is killed takes them along: what they still wrote into the next engine's trash would stay there.
  const withUs = ["setpriv", "--pdeathsig", "KILL", "--", ...argv];
  return process.getuid?.() === 0
    ? withUs
    : ["unshare", "--user", "--map-root-user", "--", ...withUs];
}

/** Work that a call waits for, or that nobody waits for: the engine's end waits for neither. */
const giveUp = new AbortController();
const underWay = new Set<Promise<string>>();

/** The programs under way are ended and gone when this returns; what they leave half done is in the trash. */
export async function giveUpFileWork(): Promise<void> {
  giveUp.abort();
  await Promise.allSettled(underWay);
}

export async function fileWork(
  argv: string[],
  options: {
    timeoutMs: number;
    unwanted?: AbortSignal | undefined;
    outputCharactersMax?: number;
  },
): Promise<string> {
  const { unwanted, ...rest } = options;
  const signal =
    unwanted === undefined ? giveUp.signal : AbortSignal.any([giveUp.signal, unwanted]);
  const running = run(asOwner(argv), { ...rest, signal });
  underWay.add(running);
  return await running.finally(() => underWay.delete(running));
}
