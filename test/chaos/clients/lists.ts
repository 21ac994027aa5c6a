/**
 * Owns the client that reads lists while all goes on: whoever was told of a sandbox finds it there.
 */
import type { Berth, ListedSandbox } from "../../../src/client/index.ts";
import type { ClientMaker } from "../harness.ts";

const pagesMax = 200;

export const lists: ClientMaker = (desk) => async () => {
  const askedMs = desk.history.now();
  const known = desk.history.made.filter(({ answeredMs }) => answeredMs < askedMs);
  const told = await desk.call("list", "", (berth) => all(berth));
  if (told.outcome !== "ack") return;
  const found = new Set(told.value.map(({ id }) => id));
  const ended = new Set(desk.history.ended.map(({ id }) => id));
  for (const { id } of known) {
    // Who is about to end it is recorded before he asks.
    if (ended.has(id)) continue;
    const got = found.has(id) ? "listed" : "missing";
    if (got === "listed") continue;
    desk.history.reads.push({
      ...{ client: desk.name, what: "the list", box: id, allowed: ["listed"], got },
    });
  }
};

export async function all(berth: Berth, state?: string): Promise<ListedSandbox[]> {
  const sandboxes: ListedSandbox[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const query = { ...(state === undefined ? {} : { state }), ...(cursor ? { cursor } : {}) };
    const told = await berth.list(query);
    sandboxes.push(...told.sandboxes);
    if (told.nextCursor === null) return sandboxes;
    cursor = told.nextCursor;
  }
  throw new Error(`the list has more than ${pagesMax} pages`);
}
