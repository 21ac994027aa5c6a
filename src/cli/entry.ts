/** The entry of the packed command: with Node's compile cache, which saves half of the time that it takes to start. */
import * as nodeModule from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// Node 20 has no such cache. Not in the folder of temporary files, where others could put programs.
const caches = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
nodeModule.enableCompileCache?.(join(caches, "berth"));
await import("./main.ts");
