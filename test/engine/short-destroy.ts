/** Preloaded into an engine under test: shortens a time limit that a test cannot wait for. */
import { limits } from "../../src/protocol/limits.ts";

Object.assign(limits, { destroyTimeoutMs: 1000 });
