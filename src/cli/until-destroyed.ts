/**
 * Owns the wait until a sandbox that was told to end has ended.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { SandboxHandle } from "../client/index.ts";
import type { Sandbox } from "../protocol/sandbox.ts";

const waitMs = 30_000;
const lookEveryMs = 250;

/** As it is then: not necessarily gone. */
export async function untilDestroyed(sandbox: SandboxHandle, view: Sandbox): Promise<Sandbox> {
  const limit = Date.now() + waitMs;
  let seen = view;
  while (seen.state !== "destroyed" && Date.now() < limit) {
    await pause(lookEveryMs);
    seen = await sandbox.get();
  }
  return seen;
}
