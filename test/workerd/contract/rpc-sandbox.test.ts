import { afterEach, describe, vi } from "vitest";
import { contractParts } from "../../contract/sandbox-api.ts";
import { overRpc } from "../world.ts";

afterEach(() => {
  vi.useRealTimers();
});

describe("over RPC", () => {
  for (const say of contractParts.sandboxes) say(overRpc);
});
