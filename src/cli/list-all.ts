/**
 * Owns reading a whole list of sandboxes, page by page, and doing something to many without asking all at once.
 */
import type { Berth } from "../client/index.ts";
import type { ListedSandbox, SandboxesInput, SandboxesPage } from "../protocol/directory.ts";

const pageMax = 1000;
const atOnceMax = 16;

export async function listAll(berth: Berth, query: SandboxesInput): Promise<ListedSandbox[]> {
  const all: ListedSandbox[] = [];
  let cursor: string | null = null;
  do {
    const at = cursor === null ? {} : { cursor };
    const page: SandboxesPage = await berth.list({ ...query, ...at, limit: pageMax });
    all.push(...page.sandboxes);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return all;
}

/** Results in the order of what they are of. */
export async function forEach<One, Result>(
  all: One[],
  work: (one: One) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const waiting = [...all.entries()];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [at, one] = next;
      results[at] = await work(one);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnceMax, all.length) }, worker));
  return results;
}
