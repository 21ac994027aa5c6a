/**
 * Copies trees for snapshots with `cp`; and trees whose paths are too long for it with a program of its own
 * (copy/main.ts), which names an entry that cannot be copied.
 */
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { BerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { isDiskFull, runFileWork } from "../rootfs/file-work.ts";
import { ProgramError } from "../run.ts";

/** Without its extension: Bun finds the source of a checkout, or the bundle of the npm package. */
const program = fileURLToPath(new URL("copy/main", import.meta.url));

export const copyResultSchema = z.object({
  refused: z.object({ code: z.string(), path: z.string() }).optional(),
});

/** Copies each source, with its name, into `folder`. */
export async function copyInto(
  sources: string[],
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + limits.snapshotTimeoutMs;
  const runProgram = (argv: string[]) =>
    runFileWork(argv, { timeoutMs: Math.max(1, Math.ceil(deadline - performance.now())), signal });
  try {
    await runProgram(["cp", "--archive", "--reflink=auto", "--", ...sources, folder]);
  } catch (error) {
    if (signal.aborted) throw error;
    if (isDiskFull(folder)) throw diskFull();
    if (!(error instanceof ProgramError) || error.exitCode === null) throw error;
    const copies = sources.map((source) => `${folder}/${basename(source)}`);
    await runProgram(["rm", "--recursive", "--force", "--", ...copies]);
    const argv = [process.execPath, "--no-env-file", program, folder, ...sources];
    const { refused } = copyResultSchema.parse(JSON.parse(await runProgram(argv)));
    if (refused !== undefined) throw refusalOf(refused, folder);
  }
}

function diskFull(): BerthError {
  return new BerthError(
    "disk_full",
    "The disk of this machine is too full for a copy of the files.",
    {
      hint: "Remove checkpoints that are no longer needed, or free disk space below the data folder.",
    },
  );
}

const diskFullCodes = ["ENOSPC", "EDQUOT"];
/** Faults of the machine, not of the tree. */
const machineCodes = ["EIO", "ENOMEM", "EMFILE", "ENFILE"];

function refusalOf({ code, path }: { code: string; path: string }, folder: string): Error {
  if (isDiskFull(folder) || diskFullCodes.includes(code)) return diskFull();
  if (machineCodes.includes(code)) return new Error(`A tree cannot be copied: ${code}.`);
  const shown = `/${path.replace(/^root\//, "")}`;
  return new BerthError("bad_request", `${shown} cannot be copied (${code}).`, {
    hint: "Remove or replace it, and try again.",
    facts: { field: "path", path: shown, reason: code },
  });
}
