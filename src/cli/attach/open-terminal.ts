/**
 * Finds the terminal to attach to, or creates it once nobody else holds the lease.
 */
import type { SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Context } from "../context.ts";
import type { Size } from "./local-terminal.ts";

/** The wait of one call; it is repeated until the user interrupts it. */
const leaseWaitMs = limits.waitMaxMs;
const totalWaitMs = 60 * 60_000;

export async function openTerminal(
  context: Context,
  sandbox: SandboxHandle,
  terminal: string,
  size: Size,
  signal: AbortSignal,
): Promise<{ made: boolean }> {
  if (await exists(sandbox, terminal, signal)) return { made: false };
  const until = performance.now() + totalWaitMs;
  for (;;) {
    try {
      await sandbox.createTerminal({ id: terminal, ...size }, { waitMs: leaseWaitMs, signal });
      return { made: true };
    } catch (thrown) {
      const known = asBerthError(thrown);
      const isHeld = known?.code === "lease_wait_timeout" || known?.code === "lease_held";
      if (!isHeld || performance.now() > until) throw thrown;
      const holder = known.facts.holder ?? "the current holder";
      context.progress.show(`Waiting for ${holder} to finish before creating terminal ${terminal}`);
    }
  }
}

async function exists(
  sandbox: SandboxHandle,
  terminal: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await sandbox.terminal(terminal, { signal });
    return true;
  } catch (thrown) {
    const code = asBerthError(thrown)?.code;
    if (code === "not_found" || code === "not_running" || code === "stale_handle") return false;
    throw thrown;
  }
}
