import { afterEach, describe, vi } from "vitest";
import { sandboxApiContract } from "../../contract/sandbox-api.ts";
import { overRest } from "../world.ts";

afterEach(() => {
  vi.useRealTimers();
});

describe("over REST", () => sandboxApiContract(overRest));
