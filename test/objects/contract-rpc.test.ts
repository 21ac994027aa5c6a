import { afterEach, describe, vi } from "vitest";
import { sandboxApiContract } from "../contract/sandbox-api.ts";
import { overRpc } from "./world.ts";

afterEach(() => {
  vi.useRealTimers();
});

describe("over RPC", () => sandboxApiContract(overRpc));
