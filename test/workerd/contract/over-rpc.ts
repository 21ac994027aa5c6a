/** One part of the contract over RPC. Each part has a file of its own, so that they run side by side. */
import { afterEach, describe, vi } from "vitest";
import { contractParts } from "../../contract/sandbox-api.ts";
import { overRpc } from "../world.ts";

export function describeOverRpc(part: keyof typeof contractParts): void {
  afterEach(() => vi.useRealTimers());

  describe("over RPC", () => {
    for (const addTests of contractParts[part]) addTests(overRpc);
  });
}
