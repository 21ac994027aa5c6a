/**
 * Owns a limit of an engine under test that is too long to be waited for: loaded before the engine itself.
 * Does not own the engine.
 */
import { limits } from "../../src/protocol/limits.ts";

Object.assign(limits, { destroyTimeoutMs: 1000 });
