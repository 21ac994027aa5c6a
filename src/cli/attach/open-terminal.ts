/**
 * Owns finding the terminal to attach to: the one that is there, else a new one, once nobody works alone any more.
 * Does not own attaching.
 */
import type { SandboxHandle } from "../../client/index.ts";
import { asBerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Context } from "../context.ts";
import type { Size } from "./local-terminal.ts";

/** Of one call; it is repeated until the person has had enough. */
const gateMs = limits.waitMaxMs;
const gateAllMs = 60 * 60_000;

export async function openTerminal(
  context: Context,
  sandbox: SandboxHandle,
  terminal: string,
  size: Size,
  signal: AbortSignal,
): Promise<{ made: boolean }> {
  if (await isThere(sandbox, terminal, signal)) return { made: false };
  const until = performance.now() + gateAllMs;
  for (;;) {
    try {
      await sandbox.createTerminal({ id: terminal, ...size }, { waitMs: gateMs, signal });
      return { made: true };
    } catch (thrown) {
      const known = asBerthError(thrown);
      const waits = known?.code === "lease_wait_timeout" || known?.code === "lease_held";
      if (!waits || performance.now() > until) throw thrown;
      const who = known.facts.holder ?? "somebody else";
      context.progress.tell(`waiting for ${who} to finish, to begin terminal ${terminal}`);
    }
  }
}

async function isThere(
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
