/** A client that reads lists during the run: every sandbox whose creation was acknowledged must be listed. */
import type { ListedSandbox } from "../../../src/client/index.ts";
import type { ConnectedCalls } from "../../berth-calls.ts";
import type { ClientMaker } from "../harness.ts";

const pagesMax = 200;

export const lists: ClientMaker = (harness) => async () => {
  const calledMs = harness.history.now();
  const known = harness.history.created.filter(({ returnedMs }) => returnedMs < calledMs);
  const result = await harness.call("list", "", (berth) => listAll(berth));
  if (result.outcome !== "ack") return;
  const found = new Set(result.value.map(({ id }) => id));
  const destroyed = new Set(harness.history.destroyed.map(({ id }) => id));
  for (const { id } of known) {
    // Destroys are recorded before they are requested.
    if (destroyed.has(id)) continue;
    if (found.has(id)) continue;
    harness.recordRead({ what: "the list", sandboxId: id, allowed: ["listed"], got: "missing" });
  }
};

export async function listAll(berth: ConnectedCalls): Promise<ListedSandbox[]> {
  const sandboxes: ListedSandbox[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const query = cursor === undefined ? {} : { cursor };
    const response = await berth.list(query);
    sandboxes.push(...response.sandboxes);
    if (response.nextCursor === null) return sandboxes;
    cursor = response.nextCursor;
  }
  throw new Error(`the list has more than ${pagesMax} pages`);
}
