/** Reads a whole list page by page, and runs work for many items with limited concurrency. */
import type { Berth, ListedSandbox, ListOptions } from "../client/index.ts";

const pageMax = 1000;
const concurrencyMax = 16;

export async function listAll(berth: Berth, query: ListOptions): Promise<ListedSandbox[]> {
  return (await listWithTenant(berth, query)).sandboxes;
}

/** `tenantId`: whose they are; undefined if the server is too old to say. */
export async function listWithTenant(
  berth: Berth,
  query: ListOptions,
): Promise<{ sandboxes: ListedSandbox[]; tenantId: string | undefined }> {
  const list = (position: PagePosition) => berth.list({ ...query, ...position, limit: pageMax });
  const pages = await readPages(list);
  return { sandboxes: pages.flat(), tenantId: pages[0]?.tenantId };
}

type PagePosition = { cursor?: string };

export async function readPages<Page extends { nextCursor: string | null }>(
  read: (position: PagePosition) => Promise<Page>,
): Promise<Page[]> {
  const pages: Page[] = [];
  let cursor: string | null = null;
  do {
    const page: Page = await read(cursor === null ? {} : { cursor });
    pages.push(page);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return pages;
}

/** The results are in the order of `all`. */
export async function mapConcurrently<Item, Result>(
  all: Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const waiting = [...all.entries()];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [position, item] = next;
      results[position] = await work(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrencyMax, all.length) }, worker));
  return results;
}
