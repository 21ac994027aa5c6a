/** Removes saved trees that no template needs any more, once no sandbox can start from them. */
import { limits } from "../../protocol/limits.ts";
import type { ObjectHost } from "../shared/host.ts";
import { messageOf } from "../shared/result.ts";
import type { TemplatePorts } from "./ports.ts";
import { type TreeRow, unneededTrees } from "./rows.ts";

type UserRow = { sandbox: string; noted_at: number };

/** Called before the sandboxes are created: a crash in between leaves a row too many, never one too few. */
export function noteUsers(host: ObjectHost, handle: string, sandboxes: readonly string[]): void {
  for (const sandbox of sandboxes)
    host.sql("INSERT OR REPLACE INTO user VALUES (?, ?, ?)", handle, sandbox, host.clock());
}

/** Never rejects. Returns whether trees are left that sandboxes may still need. */
export async function removeTrees(host: ObjectHost, ports: TemplatePorts): Promise<boolean> {
  let isAnyKept = false;
  for (const tree of unneededTrees(host)) {
    try {
      if (await isNeeded(host, ports, tree)) isAnyKept = true;
      else await remove(host, ports, tree);
    } catch (error) {
      isAnyKept = true;
      host.log({ tree: tree.handle, failed: "remove a tree", message: messageOf(error) });
    }
  }
  return isAnyKept;
}

/** Forgets the oldest sandboxes of a tree that have files of their own by now. Never rejects. */
export async function forgetUsers(
  host: ObjectHost,
  ports: TemplatePorts,
  tree: TreeRow,
): Promise<void> {
  const query = "SELECT count(*) AS n FROM user WHERE handle = ?";
  const [{ n } = { n: 0 }] = host.sql<{ n: number }>(query, tree.handle);
  if (n > limits.templateUsersMax) await isNeeded(host, ports, tree).catch(() => undefined);
}

async function isNeeded(
  host: ObjectHost,
  ports: TemplatePorts,
  { handle, stored }: TreeRow,
): Promise<boolean> {
  const query = "SELECT sandbox, noted_at FROM user WHERE handle = ? ORDER BY noted_at LIMIT ?";
  const users = host.sql<UserRow>(query, handle, limits.templateUsersMax);
  let isAnyLeft = users.length === limits.templateUsersMax;
  for (const { sandbox, noted_at: notedAt } of users) {
    const isRecent = host.clock() - notedAt < limits.templateUseMs;
    if (isRecent || (stored !== null && (await ports.needsTree(sandbox, stored)))) isAnyLeft = true;
    else host.sql("DELETE FROM user WHERE handle = ? AND sandbox = ?", handle, sandbox);
  }
  return isAnyLeft;
}

async function remove(host: ObjectHost, ports: TemplatePorts, tree: TreeRow): Promise<void> {
  // It may have been saved without a word of it.
  await ports.removeTree(tree.stored ?? tree.handle);
  host.sql("DELETE FROM tree WHERE handle = ?", tree.handle);
}
