/** Finds out whether this machine and the data folder's file system can give each sandbox ids of its own. */
import { closeSync, mkdirSync, writeFileSync } from "node:fs";
import { messageOf } from "../log.ts";
import { type DataFolders, moveToTrash, temporaryFolder } from "../rootfs/folders.ts";
import { callListPath } from "../rootfs/programs.ts";
import { run } from "../run.ts";
import type { Settings } from "../settings.ts";
import { claimIdRange } from "./id-ranges.ts";

const probeTimeoutMs = 30_000;

/** Returns why not; undefined: it can. */
export async function findRangeObstacle(
  settings: Settings,
  folders: DataFolders,
): Promise<string | undefined> {
  const folder = temporaryFolder(folders, "probe");
  const parts = ["upper", "work", "lower"].map((name) => `${folder}/${name}`);
  try {
    for (const part of parts) mkdirSync(part, { recursive: true });
    writeFileSync(`${folder}/lower/file`, "");
    const { first, lock } = claimIdRange();
    try {
      // In a process and mount namespace of its own, which leave nothing behind.
      const namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--"];
      const probe = [settings.agent, "probe", String(first), callListPath(folders), folder];
      await run([...namespaces, ...probe, folders.mountPoint], { timeoutMs: probeTimeoutMs });
      return undefined;
    } finally {
      closeSync(lock);
    }
  } catch (error) {
    return messageOf(error).trim().split("\n").at(-1);
  } finally {
    moveToTrash(folders, folder);
  }
}
