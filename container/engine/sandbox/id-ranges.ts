/**
 * Gives each running sandbox a range of ids that nobody else on the machine has. A range is a locked file in a folder
 * that all engines of the machine share; the agent holds the lock, so it ends with the sandbox, however that ends.
 * Ranges are not kept over a restart: stored files have the ids that the sandbox sees.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { BerthError } from "../../../src/protocol/errors.ts";
import { type IdRange, idsEach } from "../jail/id-range.ts";
import { tryLock } from "../lock-file.ts";

/** What systemd leaves to nobody: above its containers, below its foreign ids. */
const [firstId, lastId] = [0x7000_0000, 0x7ffd_ffff];
const rangesMax = Math.floor((lastId + 1 - firstId) / idsEach);
const claimsFolder = "/run/berth/ids";

/** The descriptor of the lock is the caller's to close, once the agent has it too. */
export type ClaimedRange = IdRange & { lock: number };

type Numbers = readonly [first: number, count: number];

/**
 * Begins at a random range, because engines in containers of one machine share its ids and not this folder.
 * Throws too_many when all are taken.
 */
export function claimIdRange(given: readonly Numbers[] = rangesOfOthers()): ClaimedRange {
  mkdirSync(claimsFolder, { recursive: true, mode: 0o700 });
  const offset = Math.floor(Math.random() * rangesMax);
  for (let tried = 0; tried < rangesMax; tried += 1) {
    const first = firstId + ((offset + tried) % rangesMax) * idsEach;
    if (given.some(([start, count]) => start < first + idsEach && first < start + count)) continue;
    const lock = tryLock(`${claimsFolder}/${first}`);
    if (lock !== undefined) return { first, lock };
  }
  throw new BerthError("too_many", `All ${rangesMax} id ranges of this machine are in use.`, {
    hint: "Destroy or pause some sandboxes.",
  });
}

/** What the machine's administrator has given to users for their own namespaces. */
function rangesOfOthers(): Numbers[] {
  return ["/etc/subuid", "/etc/subgid"].filter(existsSync).flatMap((path) =>
    readFileSync(path, "utf8")
      .split("\n")
      .flatMap((line): Numbers[] => {
        const [, first, count] = line.split(":").map(Number);
        return first && count ? [[first, count]] : [];
      }),
  );
}
