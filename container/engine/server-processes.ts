/** Reads how much memory the processes of the server have, which its launcher has recorded. */
import { readFileSync } from "node:fs";
import { z } from "zod";

const recordSchema = z.object({
  processes: z.array(z.object({ name: z.string(), pid: z.int() })),
});

/** Empty where no launcher started this engine. */
export function serverProcesses(record: string | undefined) {
  if (record === undefined) return [];
  try {
    const { processes } = recordSchema.parse(JSON.parse(readFileSync(record, "utf8")));
    return processes.flatMap(({ name, pid }) => {
      const residentBytes = residentBytesOf(pid);
      return residentBytes === undefined ? [] : [{ name: labelOf(name), residentBytes }];
    });
  } catch {
    // Just being written, or the disk is full.
    return [];
  }
}

/** "The engine" in a sentence is `engine` in a table. */
function labelOf(name: string): string {
  return name.replace(/^the /i, "");
}

function residentBytesOf(pid: number): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  } catch {
    return undefined;
  }
}
