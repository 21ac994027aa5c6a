/**
 * What an agent does when its host goes: the platform sends SIGTERM up to 15 minutes before. The agent says so to its
 * object, which saves the files and ends the container; without an answer everything ends at once, as for any SIGTERM.
 */
import { agentHeaders, callbackPaths } from "../../../src/protocol/internal/agent-wire.ts";

/** An intercepted request never leaves the host. */
const answerMs = 5_000;
/** The platform kills the container after 15 minutes; until then its object saves a large tree. */
const saveMs = 14 * 60_000;

type Callback = { callbackUrl: string | undefined; secret: string; incarnation: string };

/** Calls `end` on SIGTERM or SIGINT: at once, or when the object had time to save. A second signal ends at once. */
export function endOnSignal(callback: Callback, end: () => Promise<void>): void {
  let isWarned = false;
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, async () => {
      if (!isWarned) {
        isWarned = true;
        if (await isSaving(callback)) await Bun.sleep(saveMs);
      }
      await end();
    });
  }
}

async function isSaving({ callbackUrl, secret, incarnation }: Callback): Promise<boolean> {
  if (callbackUrl === undefined) return false;
  try {
    const response = await fetch(`${callbackUrl}${callbackPaths.closing}`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, [agentHeaders.incarnation]: incarnation },
      signal: AbortSignal.timeout(answerMs),
    });
    return response.status === 202;
  } catch {
    return false;
  }
}
